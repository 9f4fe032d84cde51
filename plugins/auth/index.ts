import type { Request } from '@hapi/hapi';
import { definePlugin, isFromCommandSocket, readDescriptions, readTexts } from 'mountkeeper';
import type { SignInsService } from 'mountkeeper';
import { lockoutProblem } from './administrators.ts';
import { hashPasswordCommand } from './cli.ts';
import { check, hasCodes, schema } from './config.ts';
import type { AuthConfig } from './config.ts';
import { createAuthenticator } from './authenticator.ts';
import { passwordCheck } from './doctor.ts';
import { checkUntrusted, exposureOf, openingProblem } from './exposure.ts';
import { httpBasic } from './http-basic.ts';
import { newcomerProblem } from './installers.ts';
import { OpenRequests } from './open-requests.ts';
import { SignIns } from './sign-ins/sign-ins.ts';
import { signInsTab } from './sign-ins/tab.ts';
import { tokenCommand } from './token-command.ts';
import { Codes } from './totp/codes.ts';
import { SecondFactor } from './totp/second-factor.ts';
import { totpCommand } from './totp/totp-command.ts';

const TEXTS = readTexts(import.meta.url);
/** How late a stream ends whose token or sign-in has expired. */
const REVIEW_MS = 2_000;

export default definePlugin<AuthConfig>({
  name: 'auth',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Asks for a password on everything the web server serves.',
  guard: true,
  config: { section: 'web', schema, check, checkUntrusted, descriptions: readDescriptions(import.meta.url) },
  register(ctx) {
    const isRoot = process.geteuid?.() === 0;
    // A document is the running one as soon as it is accepted; this plugin is told when the reload has come to it.
    const web = () => ctx.use('config').current.config.web;
    const exposure = () => exposureOf(web(), isRoot);
    const warn = (): void => {
      const found = exposure();
      if (found) ctx.log.warn({ advice: found.notice.message }, found.line);
    };
    const signIns = new SignIns(() => ctx.use('clock'));
    const codes = new Codes({ clock: () => ctx.use('clock'), log: ctx.log });
    const authenticator = createAuthenticator({
      signIns,
      secondFactor: new SecondFactor({ codes, log: ctx.log, secrets: () => ctx.use('secrets') }),
      config: web,
      secrets: () => ctx.use('secrets'),
      clock: () => ctx.use('clock'),
      log: ctx.log,
      signal: ctx.signal,
    });
    const isInClear = ({ client, raw }: Request): boolean =>
      client.isInClear && !web().plain_http && !isFromCommandSocket(raw.req);
    const open = new OpenRequests((admitted, request) => {
      if (admitted === undefined) return !authenticator.asksAnybody;
      const { signIn } = admitted.principal;
      const isSignedIn = signIn === undefined || signIns.has(signIn);
      return !isInClear(request) && isSignedIn && authenticator.isStill(admitted);
    });
    const review = (): void => {
      authenticator.reviewSignIns();
      open.review();
    };
    const service: SignInsService = {
      list: () => signIns.list(),
      end: (id) => {
        const isEnded = signIns.end(id);
        review();
        return isEnded;
      },
    };
    const page = { texts: TEXTS, asksForCode: () => hasCodes(web()) };
    ctx.hapi(httpBasic({ authenticator, isInClear, open, signIns, page, ended: review }), {});
    ctx.tab(signInsTab(service, TEXTS));
    ctx.provide('signIns', () => service);
    ctx.onConfigChange(() => {
      review();
      const { username, users } = web();
      codes.keep([username, ...users.map(({ name }) => name)]);
    });
    ctx.every({ name: 'end what expired tokens read', ms: () => REVIEW_MS, run: async () => review() });
    ctx.tap('collectNotices', () => {
      const found = exposure();
      return found ? [found.notice] : [];
    });
    ctx.tap('collectChecks', ({ web }) => [passwordCheck(web, isRoot)]);
    ctx.tap('beforeReload', (next) => {
      const now = web();
      return (
        openingProblem(now, next.config.web) ??
        lockoutProblem(now, next, ctx.use('clock').now()) ??
        newcomerProblem(ctx.use('config').current.config, next)
      );
    });
    ctx.tap('afterReload', warn);
    ctx.effect('take no code that a former daemon may have taken', () => {
      codes.start();
      return () => undefined;
    });
    ctx.effect('look at who can reach the web server', () => {
      warn();
      return () => undefined;
    });
    ctx.cli(hashPasswordCommand);
    ctx.cli(tokenCommand);
    ctx.cli(totpCommand);
  },
});
