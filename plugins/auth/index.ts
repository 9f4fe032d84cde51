import { definePlugin, readDescriptions } from 'mountkeeper';
import { hashPasswordCommand } from './cli.ts';
import { schema } from './config.ts';
import type { AuthConfig } from './config.ts';
import { createAuthenticator } from './authenticator.ts';
import { exposureOf, passwordCheck } from './exposure.ts';
import { httpBasic } from './http-basic.ts';

export default definePlugin<AuthConfig>({
  name: 'auth',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Asks for a password on everything the web server serves.',
  guard: true,
  config: { section: 'web', schema, descriptions: readDescriptions(import.meta.url) },
  register(ctx) {
    const isRoot = process.geteuid?.() === 0;
    const exposure = () => exposureOf(ctx.use('config').current.config.web, isRoot);
    const warn = (): void => {
      const found = exposure();
      if (found) ctx.log.warn({ advice: found.notice.message }, found.line);
    };
    const authenticator = createAuthenticator({
      config: () => ctx.config,
      secrets: () => ctx.use('secrets'),
      clock: () => ctx.use('clock'),
      log: ctx.log,
      signal: ctx.signal,
    });
    ctx.hapi(httpBasic(authenticator), {});
    ctx.tap('collectNotices', () => {
      const found = exposure();
      return found ? [found.notice] : [];
    });
    ctx.tap('collectChecks', ({ web }) => [passwordCheck(web, isRoot)]);
    ctx.tap('afterReload', warn);
    ctx.effect('look at who can reach the web server', () => {
      warn();
      return () => undefined;
    });
    ctx.cli(hashPasswordCommand);
  },
});
