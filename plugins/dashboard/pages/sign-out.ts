/**
 * Signs out of HTTP Basic: a browser forgets a password when an answer refuses it. So the right password is
 * refused once; afterwards, any valid one opens the page again.
 */
import { randomUUID } from 'node:crypto';
import type { Request, RouteOptions, ServerRoute } from '@hapi/hapi';
import { html, principalOf } from 'mountkeeper';
import { htmlAnswer } from './answer.ts';
import { createView } from '../view.ts';
import { readerOf } from './preferences.ts';
import { toHtml } from './shell.ts';

const PATH = '/dashboard/sign-out';
/** Of those who have signed in by a form; the plugin `auth` ends their sign-in there. */
const FORM_PATH = '/sign-out';
const MOST_REMEMBERED = 64;

export function signOutAt(request: Request): string {
  return principalOf(request)?.signIn === undefined ? PATH : FORM_PATH;
}

export function signOutRoute(options: RouteOptions): ServerRoute {
  const refused = new Set<string>();
  return {
    method: ['GET', 'POST'],
    path: PATH,
    options: { ...options },
    handler: (request, h) => {
      const { once = '' } = request.query as { once?: string };
      // Starts with a POST, which no other site can send; the address that it leads to is valid for one
      // refusal.
      if (request.method === 'post') {
        // A page that was shown before the sign-in, or a program: the same POST ends it there.
        if (signOutAt(request) !== PATH) return h.response().code(307).header('location', FORM_PATH);
        const id = randomUUID();
        refused.add(id);
        for (const former of refused) if (refused.size > MOST_REMEMBERED) refused.delete(former);
        return h.response().code(303).header('location', `${PATH}?once=${id}`);
      }
      if (!refused.delete(once)) return h.response().code(303).header('location', '/');
      const view = createView(readerOf(request));
      const said = html`<p>${view.t('signed-out')} <a href="/">${view.t('sign-in')}</a></p>`;
      return htmlAnswer(request, h, toHtml(said), 401).header(
        'www-authenticate',
        'Basic realm="mountkeeper", charset="UTF-8"',
      );
    },
  };
}
