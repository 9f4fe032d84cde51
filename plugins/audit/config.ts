import { Joi, onlyInFile, size } from 'mountkeeper';
import type { Config, ConfigProblem } from 'mountkeeper';

export interface AuditConfig {
  max_size: string;
  keep: number;
}

/** Over HTTP nobody shortens the record of what was done over HTTP. */
export const schema = Joi.object<AuditConfig, true>({
  max_size: size({ min: '64K', max: '1G' })
    .default('10M')
    .meta({ tier: 'live', fileOnly: true })
    .description('Size from which on the record goes on in a new file.'),
  keep: Joi.number()
    .integer()
    .min(1)
    .max(99)
    .default(9)
    .meta({ tier: 'live', fileOnly: true })
    .description('How many former files of the record are kept.'),
});

/** A document over HTTP does not switch the record off. */
export function checkUntrusted(next: Config, current: Config): readonly ConfigProblem[] {
  if (isOn(current) === isOn(next) || isOn(next)) return [];
  const message = onlyInFile('plugins.audit.enabled cannot be switched off over HTTP');
  return [{ path: 'plugins.audit.enabled', message }];
}

function isOn({ plugins }: Config): boolean {
  return (plugins['audit'] as { readonly enabled?: boolean } | undefined)?.enabled !== false;
}
