/** Whatever a plugin logs is the same line that pino makes of it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import type { Logger } from '../../../../../core/contract/platform.ts';
import { PluginLog } from '../../../../../core/plugins/instance/plugin-log.ts';
import { runnerLog } from '../../../../../core/plugins/runner/inside/runner-log.ts';

const failure = Object.assign(new TypeError('it broke', { cause: new Error('a cable') }), {
  code: 'EODD',
  at: 3,
});

const CALLS: Readonly<Record<string, (log: Logger) => void>> = {
  'a text': (log) => log.info('plain'),
  'fields and a text': (log) =>
    log.warn({ share: 'a', list: [1, { b: null }], no: undefined }, 'with fields'),
  'fields alone': (log) => log.error({ share: 'a' }),
  'a text among the fields': (log) => log.info({ msg: 'inside', share: 'a' }),
  'values in a text': (log) => log.info({ a: 1 }, 'one %s, two %d, three %j, %% done', 'x', 2, { c: 3 }),
  'more values than places': (log) => Reflect.apply(log.info, log, ['one %s', 'x', 'y']),
  'an error': (log) => log.error(failure),
  'an error and a text': (log) => log.error(failure, 'it is so'),
  'an error among the fields': (log) => log.error({ err: failure, share: 'a' }, 'it is so'),
  'what is below the level': (log) => log.debug('unheard'),
  'a child': (log) => log.child({ part: 'a' }).child({ more: 1 }).info({ x: 1 }, 'of a child'),
  'a child with a level': (log) => log.child({ part: 'a' }, { level: 'debug' }).debug('heard'),
  'a child with a prefix': (log) => log.child({}, { msgPrefix: '[a] ' }).info('prefixed'),
  'a child with serializers': (log) =>
    log
      .child({ part: 'a' }, { serializers: { user: () => 'somebody' } })
      .info({ user: { name: 'x' } }, 'rules'),
  'a child that hides': (log) => log.child({}, { redact: ['word'] }).fatal({ word: 'secret' }, 'hidden'),
  'bindings set later': (log) => {
    const child = log.child({ a: 1 });
    child.setBindings({ b: 2 });
    child.info(child.bindings(), 'bound');
  },
  'what holds itself': (log) => {
    const round: Record<string, unknown> = { password: 'abc-secret', list: [1] };
    round['self'] = round;
    round['twice'] = [round['list'], round['list'], round];
    log.info({ round }, 'in a circle');
  },
  'a large number and a date': (log) => log.info({ big: 12n, at: new Date(0), odd: Number.NaN }, 'values'),
  'no text at all': (log) => log.info({}),
};

function saidBy(call: (log: Logger) => void): unknown[] {
  const lines: unknown[] = [];
  call(
    runnerLog('info', (said) => {
      // As it crosses.
      const { is, ...line } = JSON.parse(JSON.stringify(said)) as { is: string };
      assert.equal(is, 'log');
      lines.push(line);
    }),
  );
  return lines;
}

function saidByPino(call: (log: Logger) => void): unknown[] {
  const lines: unknown[] = [];
  const write = (text: string): void => {
    const { level, msg = '', ...fields } = JSON.parse(text) as Record<string, unknown>;
    lines.push({ level, message: msg, fields });
  };
  const formatters = { level: (label: string) => ({ level: label }) };
  call(pino({ level: 'info', base: null, timestamp: false, formatters }, { write }) as unknown as Logger);
  return lines;
}

describe('the log of a plugin in its own process', () => {
  for (const [what, call] of Object.entries(CALLS))
    it(`says what pino says of ${what}`, () => assert.deepEqual(saidBy(call), saidByPino(call)));

  it('takes what cannot be written as JSON, and makes no text of what it holds', () => {
    const trap = {
      get bad(): never {
        throw new Error('no');
      },
      good: 1,
    };
    const deep = { trap, token: 'abc-secret' };
    const [line] = saidBy((log) => log.info({ deep, good: 1 }, 'x')) as { fields: object }[];
    assert.deepEqual(line?.fields, { deep: '[throws when it is read]', good: 1 });
    const [whole] = saidBy((log) => log.info(trap, 'y')) as { fields: object }[];
    assert.deepEqual(whole?.fields, { bad: '[throws when it is read]', good: 1 });
  });

  it('tells an error without the fields of what caused it', () => {
    const err = new Error('no bed', { cause: { password: 'abc-secret' } });
    const lines = saidBy((log) => {
      log.error({ err }, 'x');
      log.error(err);
    });
    assert.doesNotMatch(JSON.stringify(lines), /abc-secret/);
    assert.match(JSON.stringify(lines), /no bed: it threw \{\}, which is no error/);
  });

  it('is followed by its children when the level changes, also by those with rules of their own', () => {
    const lines = saidBy((log) => {
      const own = new PluginLog(log, 'garden');
      const children = [own.log.child({ a: 1 }), own.log.child({ b: 1 }, { redact: ['x'] })];
      own.setLevel('debug');
      for (const child of children) child.debug('heard');
      own.setLevel('silent');
      for (const child of [own.log, ...children]) child.fatal('unheard');
    }) as { message: string }[];
    assert.deepEqual(
      lines.map(({ message }) => message),
      ['heard', 'heard'],
    );
    assert.throws(() => saidBy((log) => (log.level = 'loud')), /unknown level/);
  });
});
