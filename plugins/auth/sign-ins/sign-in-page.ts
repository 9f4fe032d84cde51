/** The page to sign in: one document that loads nothing, since nobody is let in yet. */
import { createHash } from 'node:crypto';
import type { Request } from '@hapi/hapi';
import { safeBack } from 'mountkeeper';
import type { Texts } from 'mountkeeper';

export type SignInProblem = 'wrong' | 'too-many' | 'closed' | 'in-clear';

const STYLE = [
  ':root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}',
  'body{display:grid;place-items:center;min-height:90vh;margin:0}',
  'main{width:min(20rem,85vw)}form{display:grid;gap:1rem}',
  'h1{font-size:1.25rem;margin:0}label{display:grid;gap:.25rem}p{margin:0}',
  'input,button{font:inherit;padding:.5rem .75rem;min-height:44px;box-sizing:border-box}',
].join('');
const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

/** In place of the policy that every answer has. */
export const POLICY =
  `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; ` +
  "base-uri 'none'; frame-ancestors 'none'";

export const SIGN_IN = '/sign-in';

/** As the browser prefers; English where it prefers none that there is. */
function languageOf({ raw: { req } }: Request, texts: Texts): string {
  const chosen = /(?:^|;\s*)mountkeeper_language=([a-z]{2})/.exec(req.headers.cookie ?? '')?.[1] ?? '';
  const wanted = (req.headers['accept-language'] ?? '').split(',').map((one) => one.trim().slice(0, 2));
  return [chosen, ...wanted].find((one) => Object.hasOwn(texts, one)) ?? 'en';
}

/** The address of the page; `back`: a path of this server, to which signing in leads. */
export function signInAt(back: string): string {
  return `${SIGN_IN}?back=${encodeURIComponent(back)}`;
}

/** What the page is made of. */
export interface PageParts {
  readonly texts: Texts;
  readonly asksForCode: () => boolean;
}

export interface Shown extends PageParts {
  /** Where signing in leads; else `/`. Whoever made the address may have written anything there. */
  readonly back: unknown;
  readonly problem?: SignInProblem;
}

const NOT_AS_TEXT = /[&<>"']/g;

/** Holds nothing that a request has brought but `back`. */
export function signInPage(request: Request, { asksForCode, back, problem, texts }: Shown): string {
  const language = languageOf(request, texts);
  const t = (key: string): string => texts[language]?.[key] ?? key;
  const hasCode = asksForCode();
  const key = problem === 'wrong' && hasCode ? 'wrong-code' : problem;
  const told = key === undefined ? '' : `<p role="alert">${t(`sign-in-${key}`)}</p>`;
  // What is typed would be read on the way: nothing is asked for.
  if (problem === 'in-clear') return document(language, t('sign-in'), `<h1>Mountkeeper</h1>${told}`);
  const code = `<label>${t('code')} <input name="code" inputmode="numeric" autocomplete="one-time-code"></label>`;
  const to = safeBack(back).replace(NOT_AS_TEXT, (sign) => `&#${sign.charCodeAt(0)};`);
  return document(
    language,
    t('sign-in'),
    `<form method="post" action="${SIGN_IN}"><h1>Mountkeeper</h1>${told}` +
      `<input type="hidden" name="back" value="${to}">` +
      `<label>${t('user-name')} <input name="username" autocomplete="username" required autofocus></label>` +
      `<label>${t('password')} ` +
      `<input name="password" type="password" autocomplete="current-password" required></label>` +
      (hasCode ? code : '') +
      `<button>${t('sign-in')}</button></form>`,
  );
}

function document(language: string, title: string, body: string): string {
  return (
    `<!doctype html><html lang="${language}"><head><meta charset="utf-8">` +
    '<meta name="viewport" content="width=device-width, initial-scale=1">' +
    `<title>${title} · Mountkeeper</title><style>${STYLE}</style></head><body><main>${body}</main></body></html>`
  );
}
