/** Response schemas of the webhooks' routes. */
import { Joi } from 'mountkeeper';
import type { RouteDocument } from 'mountkeeper';

const text = () => Joi.string().allow('').required();
const count = () => Joi.number().integer().required();

const DELIVERY = Joi.object({
  id: text(),
  type: text(),
  message: text(),
  created_at: text(),
  state: text(),
  tries: count(),
  next_at: text().allow(null),
  attempts: Joi.array()
    .items(Joi.object({ at: text(), ms: count(), status: count().allow(null), problem: text().allow(null) }))
    .required(),
});
const ANSWER = Joi.object({ ok: Joi.boolean().required(), message: text(), id: text().allow(null) });

export const DOCUMENTS = {
  deliveries: {
    summary: 'Notifications that were sent, or are to be',
    answers: { 200: Joi.object({ deliveries: Joi.array().items(DELIVERY).required() }) },
  },
  test: { summary: 'Sends a test notification', answers: { 200: ANSWER } },
  resend: { summary: 'Sends a notification again', answers: { 200: ANSWER } },
} satisfies Record<string, RouteDocument>;
