/** Applies a preset: writes its parameters into the running document, as commented TOML. */
import type { ConfigService } from 'mountkeeper';
import { keepHandWritten } from './backup.ts';
import { withProfile } from './profiles.ts';
import type { ProfileName } from './profiles.ts';

export type Outcome =
  | { readonly kind: 'applied' }
  | { readonly kind: 'not-saved'; readonly detail: string }
  | { readonly kind: 'not-sent'; readonly detail: string };

export async function applyProfile(config: ConfigService, profile: ProfileName): Promise<Outcome> {
  const applied = await config.apply({
    text: ({ document }) => config.render(withProfile(document, profile)),
    origin: 'http',
    beforeWrite: (next, { document }) => keepHandWritten(config.file, [config.render(document), next.text]),
    evenIfEqual: true,
  });
  if (applied.ok) return { kind: 'applied' };
  return { kind: applied.stage === 'send' ? 'not-sent' : 'not-saved', detail: applied.message };
}
