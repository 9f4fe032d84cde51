/** GET /api/sessions, POST /api/sessions/{id}/end. */
import type { ServerRoute } from '@hapi/hapi';
import { documented, Joi, sharesOf } from 'mountkeeper';
import { withinShares } from './book.ts';
import type { Ending, ListedSession, ProtocolSessions, SessionBook } from './book.ts';

const MAX_BODY_BYTES = 16 * 1024;

export interface SessionView {
  readonly id: string;
  readonly protocol: string;
  readonly user: string | null;
  readonly address: string;
  readonly shares: readonly string[] | null;
  readonly since: string | null;
  readonly last_request: string | null;
  readonly bytes_to_client: number | null;
  readonly bytes_from_client: number | null;
  readonly can_end: boolean;
}

export interface SessionsAnswer {
  readonly sessions: readonly SessionView[];
  readonly problems: readonly { readonly protocol: string; readonly message: string }[];
}

const text = () => Joi.string().required();
const time = (what: string) => Joi.string().isoDate().allow(null).required().description(what);
const bytes = (what: string) => Joi.number().integer().allow(null).required().description(what);

const SESSIONS = Joi.object({
  sessions: Joi.array()
    .items(
      Joi.object({
        id: text().description('Names the session; never another one later.'),
        protocol: text().description('`smb`, `nfs`, `webdav`, or one of a plugin.'),
        user: Joi.string().allow(null).required().description('Null: without a name.'),
        address: text().allow(''),
        shares: Joi.array()
          .items(Joi.string())
          .allow(null)
          .required()
          .description('That it is in; null: not known.'),
        since: time('When it came; null: not known.'),
        last_request: time('When it last asked for something; null: not known.'),
        bytes_to_client: bytes('On the wire; null: not known.'),
        bytes_from_client: bytes('On the wire; null: not known.'),
        can_end: Joi.boolean().required(),
      }),
    )
    .required(),
  problems: Joi.array()
    .items(Joi.object({ protocol: text(), message: text() }))
    .required()
    .description('Protocols whose sessions are not known, or not all of them.'),
});
const ENDED = Joi.object({ ok: Joi.boolean().required(), message: text() });

/** By protocol, user and address. */
export function sessionsIn(found: readonly ProtocolSessions[]): readonly ListedSession[] {
  const keyOf = ({ protocol, user, address }: ListedSession): string =>
    `${protocol}\0${user ?? ''}\0${address}`;
  return found.flatMap(({ sessions }) => sessions).sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
}

function viewOf(session: ListedSession): SessionView {
  const { id, protocol, user, address, shares, since, lastAt, canEnd } = session;
  return {
    id,
    protocol,
    user,
    address,
    shares,
    since: timeOf(since),
    last_request: timeOf(lastAt),
    bytes_to_client: session.bytesToClient,
    bytes_from_client: session.bytesFromClient,
    can_end: canEnd,
  };
}

function timeOf(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}

function answerOf(found: readonly ProtocolSessions[]): SessionsAnswer {
  return {
    sessions: sessionsIn(found).map(viewOf),
    problems: found.flatMap(({ protocol, problem: message }) =>
      message === undefined ? [] : [{ protocol, message }],
    ),
  };
}

function sentenceOf(result: Ending['result']): string {
  if (result === 'ended') return 'Session ended';
  return result === 'unknown' ? 'There is no such session any more' : `Session not ended: ${result.problem}`;
}

export function routes(book: () => SessionBook): ServerRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/sessions',
      options: documented(
        { summary: 'Who is connected to the servers of shares', answers: { 200: SESSIONS } },
        { role: 'operator', verb: 'sessions', share: { filtered: true } },
      ),
      handler: async (request, h) =>
        h
          .response(answerOf(withinShares(await book().list(), sharesOf(request))))
          .header('cache-control', 'no-store'),
    },
    {
      method: 'POST',
      path: '/api/sessions/{id}/end',
      // The path is enough; a body is neither needed nor read.
      options: {
        ...documented(
          { summary: 'Disconnects a session; its client may come again', answers: { 200: ENDED } },
          { role: 'operator', verb: 'sessions' },
        ),
        payload: { maxBytes: MAX_BODY_BYTES, parse: false, output: 'data', failAction: 'ignore' },
      },
      handler: async (request) => {
        const { result, about } = await book().end(String(request.params['id']));
        request.app.about = about;
        return { ok: result === 'ended', message: sentenceOf(result) };
      },
    },
  ];
}
