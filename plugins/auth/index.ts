import { definePlugin, readDescriptions, readTexts } from 'mountkeeper';
import type { SignInsService } from 'mountkeeper';
import { hashPasswordCommand } from './cli.ts';
import { check, schema } from './config.ts';
import type { AuthConfig } from './config.ts';
import { createAuthenticator } from './authenticator.ts';
import { exposureOf, openingProblem, passwordCheck } from './exposure.ts';
import { httpBasic } from './http-basic.ts';
import { OpenRequests } from './open-requests.ts';
import { isCurrent } from './principals.ts';
import { Sessions } from './sessions/sessions.ts';
import { sessionsTab } from './sessions/tab.ts';
import { tokenCommand } from './token-command.ts';

const TEXTS = readTexts(import.meta.url);
/** How late a stream ends whose token or session has expired. */
const REVIEW_MS = 2_000;

export default definePlugin<AuthConfig>({
  name: 'auth',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Asks for a password on everything the web server serves.',
  guard: true,
  config: { section: 'web', schema, check, descriptions: readDescriptions(import.meta.url) },
  register(ctx) {
    const isRoot = process.geteuid?.() === 0;
    const exposure = () => exposureOf(ctx.use('config').current.config.web, isRoot);
    const warn = (): void => {
      const found = exposure();
      if (found) ctx.log.warn({ advice: found.notice.message }, found.line);
    };
    const sessions = new Sessions(() => ctx.use('clock'));
    const authenticator = createAuthenticator({
      sessions,
      config: () => ctx.config,
      secrets: () => ctx.use('secrets'),
      clock: () => ctx.use('clock'),
      log: ctx.log,
      signal: ctx.signal,
    });
    const open = new OpenRequests();
    const review = (): void => {
      const now = ctx.use('clock').now();
      authenticator.reviewSessions();
      open.review((admitted) => {
        const session = admitted?.principal.session;
        return isCurrent(admitted, ctx.config, now) && (session === undefined || sessions.has(session));
      });
    };
    const service: SignInsService = {
      list: () => sessions.list(),
      end: (id) => {
        const isEnded = sessions.end(id);
        review();
        return isEnded;
      },
    };
    ctx.hapi(httpBasic({ authenticator, open, sessions, texts: TEXTS, ended: review }), {});
    ctx.tab(sessionsTab(service, TEXTS));
    ctx.provide('signIns', () => service);
    ctx.onConfigChange(review);
    ctx.every({ name: 'end what expired tokens read', ms: () => REVIEW_MS, run: async () => review() });
    ctx.tap('collectNotices', () => {
      const found = exposure();
      return found ? [found.notice] : [];
    });
    ctx.tap('collectChecks', ({ web }) => [passwordCheck(web, isRoot)]);
    ctx.tap('beforeReload', ({ config }) => openingProblem(ctx.use('config').current.config.web, config.web));
    ctx.tap('afterReload', warn);
    ctx.effect('look at who can reach the web server', () => {
      warn();
      return () => undefined;
    });
    ctx.cli(hashPasswordCommand);
    ctx.cli(tokenCommand);
  },
});
