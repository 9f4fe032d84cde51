/** What an import would bring in that nobody may bring in over HTTP, such as a program that rclone runs. */
import { editToml } from 'mountkeeper';
import type { ConfigService } from 'mountkeeper';
import type { Draft } from './draft.ts';

/** Sentences; none where the tables are as harmless as what the dashboard takes. Nothing of them is run. */
export async function doubtsOf({ clear, share }: Draft, config: ConfigService): Promise<readonly string[]> {
  const { connections, shares } = config.current.config;
  const text = editToml(config.shown(), [
    { path: ['connections', connections.length], value: clear },
    { path: ['shares', shares.length], value: share },
  ]);
  const check = await config.check(text, 'http', { keepSecrets: true });
  return check.ok ? [] : check.problems.map(({ message }) => message);
}
