/** Short runs of a plugin's process: the first, in which it says what it declares, and one that migrates its table. */
import type { ServiceUser } from '../../../contract/platform.ts';
import { createClock } from '../../../platform/clock.ts';
import type { Declared } from '../../discovery/manifest.ts';
import { MayPass } from '../../discovery/may-pass.ts';
import { packageDir } from '../../discovery/stage.ts';
import { beyondPermissions } from './confinement.ts';
import { checkedDeclaration } from '../carried/declaration.ts';
import type { Declaration } from '../carried/declaration.ts';
import { textOf } from '../protocol.ts';
import { RunnerProcess } from './runner-process.ts';
import type { RunnerOptions } from './runner-process.ts';

export interface RunnerRequest {
  readonly entry: string;
  readonly name: string;
  /** Where its copy lies. */
  readonly folder: string;
  /** What its package.json says. */
  readonly declared: Declared;
  readonly stateDir: string;
  /** Whom its process runs as. */
  readonly user?: ServiceUser | undefined;
  readonly timeoutMs: number;
  /** Told before it resolves: whether its process has the daemon's network though it may not use it. */
  readonly onNetwork?: (isOurs: boolean) => void;
}

/** Rejects with the sentence why the plugin cannot be carried; a `MayPass` where that may be the machine's doing. */
export async function declarationFrom(request: RunnerRequest): Promise<Declaration> {
  const declaration = checkedDeclaration(await shortRun(request, 'declare', {}));
  const problem = beyondPermissions(declaration, request.declared.permissions);
  if (problem !== undefined) throw new Error(problem);
  return declaration;
}

/** The table in its new form, as the plugin gives it. Nothing of it has been checked. */
export function migratedBy(request: RunnerRequest, table: object): Promise<unknown> {
  return shortRun(request, 'migrate', table);
}

const SLOW = {
  declare: 'finish loading within TIME; a module must not loop or wait while it is imported',
  migrate: 'migrate its table within TIME',
} as const;

function shortRun(request: RunnerRequest, task: 'declare' | 'migrate', config: object): Promise<unknown> {
  const { entry, name, folder, declared, stateDir, user, timeoutMs } = request;
  const { permissions } = declared;
  const clock = createClock();
  return new Promise<unknown>((resolve, reject) => {
    let isLate = false;
    const runner: RunnerProcess = started({
      clock,
      confinement: { permissions, entry, folder, name, stateDir, packageDir, user },
      onLine: () => undefined,
      onNote: () => undefined,
      onMessage: (message) => {
        if (message.is === 'declared') {
          request.onNetwork?.(runner.hasOurNetwork);
          resolve(message.declaration);
        } else if (message.is === 'migrated') resolve(message.table);
        else if (message.is === 'refused') reject(new Error(textOf(message.reason)));
        else return;
        runner.kill('it has said what was asked');
      },
      onEnd: (end) => {
        cancel();
        reject(isLate || end?.mayPass === true ? new MayPass(end?.reason) : new Error(end?.reason));
      },
    });
    const cancel = clock.after(
      timeoutMs,
      () => {
        isLate = true;
        runner.kill(`it did not ${SLOW[task].replace('TIME', `${timeoutMs / 1_000} s`)}`);
      },
      { keepAlive: true },
    );
    runner.send({
      is: 'begin',
      task,
      entry,
      folder,
      name,
      declared,
      config,
      paths: { stateDir, packageDir },
      logLevel: 'silent',
      world: {},
    });
  });
}

function started(options: RunnerOptions): RunnerProcess {
  try {
    return new RunnerProcess(options);
  } catch (error) {
    throw new MayPass((error as Error).message, { cause: undefined });
  }
}
