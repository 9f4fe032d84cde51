/**
 * Waits until what runs is what a document says. That a share is mounted and healthy says nothing of it: its former mount is both
 * until the moment it goes. But the record of each rclone process names the settings that it was mounted with.
 */
import { readdir, readFile } from 'node:fs/promises';
import type { Config } from 'mountkeeper';
import { parse } from 'smol-toml';
import { createSecrets } from '../../core/config/secrets.ts';
import { specsOf } from '../../core/share-specs.ts';
import { planMount } from '../../plugins/mount/plan.ts';
import type { ConnectionText } from './config-text.ts';
import type { Answer, ConfigAnswer, Daemon } from './daemon.ts';
import { isAlive } from './processes.ts';
import { until } from './until.ts';

interface MountRecord {
  readonly pid: number;
  readonly fingerprint: string;
  readonly notes: { readonly share?: string; readonly rcPort?: number };
}

/** Submits a document that differs, and waits until its shares are mounted as it says, healthy, and no others are there. */
export async function applied(daemon: Daemon, toml: string, timeoutMs = 60_000): Promise<Answer<ConfigAnswer>> {
  const answer = await daemon.submit(toml);
  if (answer.status !== 200) throw new Error(answer.text);
  await runs(daemon, toml, timeoutMs);
  return answer;
}

/** The same for a document that the daemon has accepted already. */
export async function runs(daemon: Daemon, toml: string, timeoutMs = 60_000): Promise<void> {
  const wanted = await fingerprints(daemon, toml);
  await until('what runs is what the configuration says', async () => {
    const { shares } = await daemon.status();
    const records = await mountRecords(daemon.stateDir);
    return shares.length === wanted.size && shares.every((share) => {
      const record = records.find(({ notes }) => notes.share === share.name);
      return record !== undefined && record.fingerprint === wanted.get(share.name) && isAlive(record.pid)
        && share.mounted && share.health === 'healthy' && share.rc_port === record.notes.rcPort && !/(new|former) settings/.test(share.health_message ?? '');
    });
  }, { timeoutMs, everyMs: 100 });
}

/** By share. The daemon completes the document, and shows it without its secrets: they come from the text. */
async function fingerprints(daemon: Daemon, toml: string): Promise<ReadonlyMap<string, string>> {
  const { body } = await daemon.get<Config>('/api/config');
  const texts = new Map(((parse(toml)['connections'] ?? []) as unknown as ConnectionText[]).map((one) => [one.name, one.options]));
  const connections = body.connections.map((one) => ({ ...one, options: { ...one.options, ...texts.get(one.name) } }));
  const config = { ...body, connections } as Config;
  const secrets = createSecrets({ env: { ...daemon.traits.env } });
  return new Map(specsOf(config).map((spec) => [spec.share.name, planMount(spec, config, secrets).fingerprint]));
}

async function mountRecords(stateDir: string): Promise<readonly MountRecord[]> {
  const folder = `${stateDir}/processes`;
  const names = (await readdir(folder)).filter((name) => name.endsWith('.json'));
  // One that is replaced or removed in this moment is read the next time.
  const texts = await Promise.all(names.map((name) => readFile(`${folder}/${name}`, 'utf8').catch(() => undefined)));
  return texts.filter((text) => text !== undefined).map((text) => JSON.parse(text) as MountRecord);
}
