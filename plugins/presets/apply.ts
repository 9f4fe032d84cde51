/** Applies a profile: the document with its parameters is checked, written as commented TOML and sent to the supervisor. */
import type { ConfigService, LoadedConfig } from 'mountkeeper';
import { keepHandWritten } from './backup.ts';
import { withProfile } from './profiles.ts';
import type { ProfileName } from './profiles.ts';

export type Outcome =
  | { readonly kind: 'applied' }
  | { readonly kind: 'not-saved'; readonly detail: string }
  | { readonly kind: 'not-sent'; readonly detail: string };

export interface ApplyParts {
  readonly config: ConfigService;
  readonly reload: (next: LoadedConfig) => Promise<void>;
}

function detailOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function save(config: ConfigService, profile: ProfileName): Promise<LoadedConfig> {
  const basis = config.current;
  const running = basis.document;
  const text = config.render(withProfile(running, profile));
  const check = await config.check(text, 'http');
  if (!check.ok) throw new Error(check.message);
  await keepHandWritten(config.file, [config.render(running), text]);
  try {
    await config.write(text, basis);
  } catch (error) {
    // A preset changes what is there, whatever that is by now.
    if (config.current.text !== basis.text) return save(config, profile);
    throw error;
  }
  return check.loaded;
}

export async function applyProfile({ config, reload }: ApplyParts, profile: ProfileName): Promise<Outcome> {
  let next: LoadedConfig;
  try {
    next = await save(config, profile);
  } catch (error) {
    return { kind: 'not-saved', detail: detailOf(error) };
  }
  try {
    await reload(next);
    return { kind: 'applied' };
  } catch (error) {
    return { kind: 'not-sent', detail: detailOf(error) };
  }
}
