/** The document as it may be shown: every secret that is set, and every value that may be one, is masked. */
import type { Config } from '../../contract/config.ts';
import type { Assembly } from '../schema/schema.ts';
import { isTable } from '../../sdk/toml/document.ts';
import { isSecretPath, maskSecrets, secretPaths } from './secret-paths.ts';
import type { SecretPaths } from './secret-paths.ts';
import type { Segment } from '../../sdk/toml/path.ts';

export function redact(
  config: Config,
  assembly: Pick<Assembly, 'root' | 'entries'>,
): Record<string, unknown> {
  return maskSecrets(config, secretPaths(config, assembly)) as Record<string, unknown>;
}

/** Whether the document itself contains a secret, or a value that may be one, and not only a reference. */
export function holdsSecrets(config: Config, assembly: Pick<Assembly, 'root' | 'entries'>): boolean {
  return holds(config, secretPaths(config, assembly), []);
}

function holds(value: unknown, paths: SecretPaths, segments: readonly Segment[]): boolean {
  if (isSecretPath(paths, segments))
    return (typeof value === 'string' && value !== '') || typeof value === 'number';
  if (Array.isArray(value))
    return value.some((item: unknown, index) => holds(item, paths, [...segments, index]));
  return (
    isTable(value) && Object.entries(value).some(([name, item]) => holds(item, paths, [...segments, name]))
  );
}
