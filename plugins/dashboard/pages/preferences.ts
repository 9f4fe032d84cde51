/** The reader's language and theme, in cookies that contain nothing else and give no access. */
import type { Request, RouteOptions, ServerRoute } from '@hapi/hapi';
import { principalOf, roleOf, safeBack } from 'mountkeeper';
import { LANGUAGES, pickLanguage } from '../languages.ts';
import type { Reader } from './sources.ts';

const THEMES = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];
const COOKIE_SECONDS = 365 * 24 * 3_600;

function cookie(request: Request, name: string): string | undefined {
  const header = String(request.raw.req.headers['cookie'] ?? '');
  return header
    .split(';')
    .map((pair) => pair.trim().split('='))
    .find(([key]) => key === `mountkeeper_${name}`)?.[1];
}

/** The host without its port, as the listener has checked it. */
function hostOf(request: Request): string {
  const { host = 'localhost' } = request.raw.req.headers;
  return host.startsWith('[') ? host.slice(1, host.indexOf(']')) : host.replace(/:\d*$/, '');
}

export function readerOf(request: Request): Reader {
  return {
    language: pickLanguage(cookie(request, 'language'), request.raw.req.headers['accept-language']),
    host: hostOf(request),
    role: roleOf(request),
    signIn: principalOf(request)?.signIn,
  };
}

export function themeOf(request: Request): Theme {
  const chosen = cookie(request, 'theme');
  return THEMES.find((theme) => theme === chosen) ?? 'auto';
}

export function preferenceRoute(options: RouteOptions): ServerRoute {
  return {
    method: 'POST',
    path: '/dashboard/preferences',
    options: { ...options, payload: { maxBytes: 16 * 1024, allow: 'application/x-www-form-urlencoded' } },
    handler: (request, h) => {
      // Cookies of the reader's own browser.
      request.app.isQuestion = true;
      const { language, theme, back } = (request.payload ?? {}) as Record<string, unknown>;
      const response = h.response().code(303).header('location', safeBack(back));
      const keep = (name: string, value: string): void => {
        response.header(
          'set-cookie',
          `mountkeeper_${name}=${value}; Path=/; Max-Age=${COOKIE_SECONDS}; SameSite=Lax; HttpOnly`,
          { append: true },
        );
      };
      if (typeof language === 'string' && LANGUAGES.includes(language)) keep('language', language);
      const known = THEMES.find((one) => one === theme);
      if (known) keep('theme', known);
      return response;
    },
  };
}
