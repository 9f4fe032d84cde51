/** Constant load: clients with kept-alive connections that ask again and again until told to stop. */
import { Agent, request } from 'node:http';

export interface LoadReport {
  readonly answers: number;
  /** One text per failed request. */
  readonly failures: readonly string[];
  /** Sorted. */
  readonly latenciesMs: readonly number[];
}

interface Target {
  readonly port: number;
  readonly paths: readonly string[];
}

function askOnce(agent: Agent, port: number, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const call = request({ agent, port, host: '127.0.0.1', path, timeout: 10_000 }, (response) => {
      response.resume();
      response.once('end', () =>
        response.complete ? resolve(response.statusCode ?? 0) : reject(new Error('cut short')),
      );
      response.once('error', reject);
    });
    call.once('timeout', () => call.destroy(new Error('no answer in 10 s')));
    call.once('error', reject);
    call.end();
  });
}

/**
 * Starts so many clients. `accept` judges each answer; all others are counted as failures. `stop` resolves
 * with the figures.
 */
export function startLoad(
  clients: number,
  target: Target,
  accept: (path: string, status: number) => boolean = (_, status) => status === 200,
): { stop(): Promise<LoadReport> } {
  const state = { isStopped: false, answers: 0, failures: [] as string[], latenciesMs: [] as number[] };
  const runClient = async (offset: number): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let turn = offset; !state.isStopped; turn += 1) {
      const path = target.paths[turn % target.paths.length] ?? '/';
      const start = performance.now();
      try {
        const status = await askOnce(agent, target.port, path);
        if (!accept(path, status)) state.failures.push(`${path} ${status}`);
      } catch (error) {
        state.failures.push(`${path} ${(error as Error).message}`);
      }
      state.latenciesMs.push(performance.now() - start);
      state.answers += 1;
    }
    agent.destroy();
  };
  const running = Array.from({ length: clients }, (_, index) => runClient(index));
  return {
    stop: async () => {
      state.isStopped = true;
      await Promise.all(running);
      return {
        answers: state.answers,
        failures: state.failures,
        latenciesMs: state.latenciesMs.sort((a, b) => a - b),
      };
    },
  };
}
