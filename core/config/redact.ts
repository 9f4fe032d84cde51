/** The document as it may be shown: every secret that is set reads as the mask, every other value as it is. */
import type { Config } from '../api.ts';
import type { Assembly } from './schema.ts';
import { maskSecrets, secretPaths } from './secret-paths.ts';

export function redact(config: Config, assembly: Pick<Assembly, 'root' | 'entries'>): Record<string, unknown> {
  return maskSecrets(config, secretPaths(config, assembly)) as Record<string, unknown>;
}
