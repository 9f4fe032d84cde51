/**
 * Makes a test process say what it waits for, and end. A test may never end, or leave something open that
 * keeps the process from ending after the last one; from outside, both look like a file that takes long. A
 * process that is busy in a loop runs no timer: that one is for the time limit of test/run.ts.
 */
import { afterEach, beforeEach } from 'node:test';
import type { SuiteContext, TestContext } from 'node:test';

export interface Patience {
  /** How the process is called in what is said. */
  readonly name: string;
  /** From now until the process ends itself with code 1. */
  readonly limitMs: number;
  /** Without any test, until it is said what keeps the process; hooks of a suite take some time, too. */
  readonly idleMs: number;
  /** Without any test, until the process ends itself with code 1. */
  readonly idleLimitMs: number;
  readonly say: (line: string) => void;
}

/** Called once, before a test is declared. Never keeps the process from ending. */
export function sayWhatIsStillRunning({ name, limitMs, idleMs, idleLimitMs, say }: Patience): void {
  const running = new Set<TestContext | SuiteContext>();
  let last = 'none';
  const tell = (what: string): void =>
    say(`${name}: ${what}; the last test was ${last}; open: ${openResources()}`);
  const end = (what: string): never => {
    tell(`ended, ${what}`);
    process.exit(1);
  };
  const whenIdle = (ms: number, act: (what: string) => void): NodeJS.Timeout =>
    setTimeout(() => running.size === 0 && act(`no test has run for ${seconds(ms)}`), ms).unref();
  const idle = [whenIdle(idleMs, tell), whenIdle(idleLimitMs, end)];
  beforeEach((test) => {
    running.add(test);
    last = nameOf(test);
  });
  afterEach((test) => {
    running.delete(test);
    for (const timer of idle) timer.refresh();
  });
  setTimeout(() => {
    const tests = [...running].map(nameOf).join(', ');
    end(`not done after ${seconds(limitMs)}; ${tests === '' ? 'no test' : tests} was running`);
  }, limitMs).unref();
}

const seconds = (ms: number): string => `${ms / 1_000} s`;

function nameOf(test: TestContext | SuiteContext): string {
  return `'${'fullName' in test ? test.fullName : test.name}'`;
}

/**
 * `TCPServerWrap, Timeout (3)`: the kinds that Node knows, with how many there are of each. Where the output
 * is read through pipes, these are in it, too.
 */
function openResources(): string {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const kinds = [...counts].map(([kind, count]) => (count === 1 ? kind : `${kind} (${count})`));
  return kinds.length === 0 ? 'nothing that Node knows of' : kinds.join(', ');
}
