import { definePlugin } from 'mountkeeper';
import type { MetricSample } from 'mountkeeper';
import { SessionBook } from './book.ts';
import { sessionsCommand } from './cli.ts';
import { routes } from './routes.ts';
import { sessionsTab } from './tab.ts';

/** A look costs a tenth of a second of the processor, and collectors ask every few seconds. */
const LOOK_AGAIN_MS = 55_000;
/** Those that ask once a minute are given what the look before found. */
const METRIC_MS = 150_000;

export default definePlugin({
  name: 'sessions',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Shows who is connected over SMB, NFS and WebDAV, and disconnects them on demand.',
  requires: ['clock', 'exporters'],
  register(ctx) {
    let made: SessionBook | undefined;
    const book = (): SessionBook =>
      (made ??= new SessionBook({ clock: ctx.use('clock'), exporters: ctx.use('exporters') }));
    ctx.route(...routes(book));
    ctx.cli(sessionsCommand);
    ctx.tab(sessionsTab(ctx, book));
    ctx.metric({
      name: 'mountkeeper_sessions',
      help: 'Sessions of clients by protocol, a minute or two old; left out where it cannot be told.',
      labels: ['protocol'],
      read: (): readonly MetricSample[] => {
        const now = book();
        const found = now.knownFor(METRIC_MS) ?? [];
        // For a later scrape: whoever reads metrics does not wait. It never rejects.
        if (now.knownFor(LOOK_AGAIN_MS) === undefined) void now.list();
        return found
          .filter(({ problem }) => problem === undefined)
          .map(({ protocol, sessions }) => ({ labels: { protocol }, value: sessions.length }));
      },
    });
  },
});
