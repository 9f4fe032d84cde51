import { hostname } from 'node:os';
import { Joi } from 'mountkeeper';

export interface DiscoveryConfig {
  name: string;
  workgroup: string;
}

/** A name that is valid in the network neighbourhood and as a host name in `.local`. */
const LABEL = /^(?!-)[A-Za-z0-9-]{1,63}(?<!-)$/;

export const schema = Joi.object<DiscoveryConfig, true>({
  name: Joi.string()
    .allow('')
    .pattern(LABEL)
    .messages({
      'string.pattern.base': '{{#label}} must be 1 to 63 letters, digits or "-", with no "-" at either end',
    })
    .default('')
    .description("Name under which the servers are announced in the network; empty: the machine's own name."),
  workgroup: Joi.string()
    .pattern(/^[A-Za-z0-9_-]{1,15}$/)
    .messages({ 'string.pattern.base': '{{#label}} must be 1 to 15 letters, digits, "-" or "_"' })
    .default('WORKGROUP')
    .description('Workgroup under which Windows shows this machine.'),
}).meta({ tier: 'protocol' });

export function announcedName({ name }: DiscoveryConfig, machine: string = hostname()): string {
  if (name !== '') return name;
  const label = (machine.split('.')[0] ?? '')
    .replaceAll(/[^A-Za-z0-9-]+/g, '-')
    .replaceAll(/^-+|(?<!-)-+$/g, '')
    .slice(0, 63);
  return label === '' ? 'mountkeeper' : label;
}
