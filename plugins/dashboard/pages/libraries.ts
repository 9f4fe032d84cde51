/**
 * Two packages that only rendering needs: imported for the first page, so that the daemon's start does not
 * wait for them.
 */
import type { IntlMessageFormat } from 'intl-messageformat';
import type { render } from 'preact-render-to-string';

export interface Libraries {
  readonly render: typeof render;
  readonly IntlMessageFormat: typeof IntlMessageFormat;
}

let loaded: Libraries | undefined;

/** Resolves when pages can be rendered. */
export async function loadLibraries(): Promise<void> {
  if (loaded) return;
  const [preact, intl] = await Promise.all([import('preact-render-to-string'), import('intl-messageformat')]);
  loaded = { render: preact.render, IntlMessageFormat: intl.IntlMessageFormat };
}

/** Throws before `loadLibraries` has resolved: every route of the dashboard waits for that. */
export function libraries(): Libraries {
  if (!loaded) throw new Error('nothing can be drawn before loadLibraries() has resolved');
  return loaded;
}
