import { join } from 'node:path';
import { definePlugin, readDescriptions, sizeBytes, timeBoxOr, withRelease } from 'mountkeeper';
import type { LoadedConfig, PluginContext } from 'mountkeeper';
import { auditCommand } from './cli.ts';
import { checkUntrusted, schema } from './config.ts';
import type { AuditConfig } from './config.ts';
import { entryOfConfig, entryOfRequest } from './entries.ts';
import { AuditRecord } from './record.ts';
import { Attempts, isAttempt } from './refusals.ts';
import { refusedSignIns, SignIns } from './sign-ins.ts';

const CLOSE_MS = 2_000;

interface Open {
  readonly record: AuditRecord;
  readonly attempts: Attempts;
  readonly signIns: SignIns;
  /** The document whose changes are written down. */
  known: LoadedConfig;
}

/** A hanging disk does not hold up the end of the daemon. */
async function close(ctx: PluginContext<AuditConfig>, open: Open, signal: AbortSignal): Promise<void> {
  const { record, attempts, signIns } = open;
  const config = ctx.use('config');
  attempts.end();
  signIns.end();
  // The document that switches the record off comes into force after it has gone.
  const diff = config.compare(open.known.config, config.current.config);
  if (diff.tier !== undefined) record.write(entryOfConfig(config.current, diff));
  record.write({ event: 'stop', reason: String(signal.reason) });
  await timeBoxOr(ctx.use('clock'), CLOSE_MS, record.close(), () => undefined);
}

export default definePlugin<AuditConfig>({
  name: 'audit',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Writes down every change and every refused attempt: who, from where, what.',
  requires: ['clock', 'paths'],
  config: { schema, checkUntrusted, descriptions: readDescriptions(import.meta.url) },
  register(ctx) {
    const opened = ctx.effect('keep the record of changes', (signal) => {
      const clock = ctx.use('clock');
      const record = new AuditRecord({
        folder: join(ctx.use('paths').stateDir, 'audit'),
        clock,
        log: ctx.log,
        limits: () => ({ maxBytes: sizeBytes(ctx.config.max_size), keep: ctx.config.keep }),
      });
      const attempts = new Attempts(clock, (entry) => record.write(entry));
      const signIns = new SignIns(clock, (entry) => record.write(entry));
      const open: Open = { record, attempts, signIns, known: ctx.use('config').current };
      record.write({ event: 'start', pid: process.pid });
      return withRelease(open, () => close(ctx, open, signal));
    });
    ctx.tap('afterRequest', (request) => {
      const entry = entryOfRequest(request);
      const open = opened();
      if (!entry || !open) return;
      if (isAttempt(request)) open.attempts.add(entry, request);
      else open.record.write(entry);
    });
    ctx.tap('afterReload', (next, diff) => {
      const open = opened();
      if (!open) return;
      open.known = next;
      open.record.write(entryOfConfig(next, diff));
    });
    ctx.provide('refusedSignIns', () => ({
      add: (protocol, refused) => {
        const { error } = refusedSignIns.validate(refused, { convert: false });
        if (error) ctx.log.error({ protocol }, 'what is told of refused sign-ins cannot be used');
        else opened()?.signIns.add(protocol, refused);
      },
    }));
    ctx.tap('collectNotices', () => {
      const { record, signIns } = opened() ?? {};
      const problem = record?.problem;
      const unwritten = problem === undefined ? [] : [{ level: 'error' as const, message: problem }];
      return [...unwritten, ...(signIns?.notices() ?? [])];
    });
    ctx.cli(auditCommand);
  },
});
