/**
 * Waits until what runs is what a document says. That a share is mounted and healthy says nothing of it: its
 * former mount is both until the moment it goes. But the record of each rclone process names the settings
 * that it was mounted with.
 */
import { readdir, readFile } from 'node:fs/promises';
import type { Config } from 'mountkeeper';
import { parse } from 'smol-toml';
import { createSecrets } from '../../../core/config/secrets/secrets.ts';
import { specsOf } from '../../../core/shares/specs.ts';
import { planMount } from '../../../plugins/mount/lifecycle/mount-plan.ts';
import type { ConnectionText } from './config-text.ts';
import type { Answer, ConfigAnswer, Daemon, ShareJson } from '../daemon/daemon.ts';
import { isAlive } from '../platform/processes.ts';
import { until } from '../platform/wait.ts';

/** Stands where a secret is not shown. */
const MASK = '********';

interface MountRecord {
  readonly pid: number;
  readonly fingerprint: string;
  readonly notes: { readonly share?: string; readonly rcPort?: number };
}

/**
 * Submits a document, and waits until its shares are mounted as it says, healthy, and no others are there.
 */
export async function applied(
  daemon: Daemon,
  toml: string,
  timeoutMs = 60_000,
): Promise<Answer<ConfigAnswer>> {
  const answer = await daemon.submit(toml);
  if (answer.status !== 200) throw new Error(answer.text);
  await runs(daemon, toml, timeoutMs);
  return answer;
}

/** The same for a document that was saved on the disk, or has been accepted already. */
export async function runs(daemon: Daemon, toml: string, timeoutMs = 60_000): Promise<void> {
  const document = parse(toml);
  await until(
    'the document is the running one',
    async () => holds((await daemon.get('/api/config')).body, document),
    { timeoutMs, everyMs: 100 },
  );
  const wanted = await fingerprints(daemon, document);
  await until(
    'what runs is what the configuration says',
    async () => {
      const { shares } = await daemon.status();
      const records = await mountRecords(daemon);
      return (
        shares.length === wanted.size &&
        shares.every((share) => {
          const record = records.get(share.name);
          return (
            record?.fingerprint === wanted.get(share.name) &&
            isCarriedBy(share, record) &&
            !/(new|former) settings/.test(share.health_message ?? '')
          );
        })
      );
    },
    { timeoutMs, everyMs: 100 },
  );
}

/** Waits until another rclone than the one given carries a share, which is healthy with it. */
export async function mountedAnew(
  daemon: Daemon,
  share: string,
  formerPid: number,
  timeoutMs = 60_000,
): Promise<void> {
  await until(
    `${share} is mounted anew`,
    async () => {
      const record = (await mountRecords(daemon)).get(share);
      return record?.pid !== formerPid && isCarriedBy(await daemon.share(share), record);
    },
    { timeoutMs, everyMs: 100 },
  );
}

function isCarriedBy(share: ShareJson, record: MountRecord | undefined): boolean {
  return (
    record !== undefined &&
    isAlive(record.pid) &&
    share.mounted &&
    share.health === 'healthy' &&
    share.rc_port === record.notes.rcPort
  );
}

/**
 * What stands in the text stands in what the daemon shows, which has the defaults beside it and a mask over
 * secrets.
 */
function holds(shown: unknown, wanted: unknown): boolean {
  if (shown === MASK) return true;
  if (Array.isArray(wanted))
    return (
      Array.isArray(shown) &&
      shown.length === wanted.length &&
      wanted.every((one, index) => holds(shown[index], one))
    );
  if (typeof wanted !== 'object' || wanted === null) return String(shown) === String(wanted);
  return (
    typeof shown === 'object' &&
    shown !== null &&
    Object.entries(wanted).every(([key, one]) => holds((shown as Record<string, unknown>)[key], one))
  );
}

/** By share. The daemon completes the document, and shows it without its secrets: they come from the text. */
async function fingerprints(
  daemon: Daemon,
  document: Record<string, unknown>,
): Promise<ReadonlyMap<string, string>> {
  const { body } = await daemon.get<Config>('/api/config');
  const texts = new Map(
    ((document['connections'] ?? []) as ConnectionText[]).map((one) => [one.name, one.options]),
  );
  const connections = body.connections.map((one) => ({
    ...one,
    options: { ...one.options, ...texts.get(one.name) },
  }));
  const config = { ...body, connections } as Config;
  const secrets = createSecrets({ env: { ...daemon.traits.env } });
  return new Map(
    specsOf(config).map((spec) => [spec.share.name, planMount(spec, config, secrets).fingerprint]),
  );
}

async function mountRecords({ stateDir }: Daemon): Promise<ReadonlyMap<string | undefined, MountRecord>> {
  const folder = `${stateDir}/processes`;
  const names = (await readdir(folder)).filter((name) => name.endsWith('.json'));
  // One that is replaced or removed in this moment is read the next time.
  const texts = await Promise.all(
    names.map((name) => readFile(`${folder}/${name}`, 'utf8').catch(() => undefined)),
  );
  const records = texts.filter((text) => text !== undefined).map((text) => JSON.parse(text) as MountRecord);
  return new Map(
    records.filter(({ notes }) => notes.rcPort !== undefined).map((record) => [record.notes.share, record]),
  );
}
