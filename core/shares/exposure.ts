/**
 * Adds a share to every exporter, has it take no more writes, and removes it, each call with a time limit, because a
 * server that hangs must not block the share.
 */
import type { Logger } from 'pino';
import type { Clock } from '../contract/platform.ts';
import type { Exporter } from '../contract/exporter.ts';
import type { Mount, ShareSpec } from '../contract/mount.ts';
import { timeBox } from '../platform/deadline.ts';

const DEADLINE_MS = 5_000;

export interface ExposureOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly exporters: () => readonly Exporter[];
}

export async function expose(options: ExposureOptions, spec: ShareSpec, mount: Mount): Promise<void> {
  await each(options, { share: spec.share.name, complaint: 'share not exposed' }, (exporter) =>
    exporter.add(spec, mount),
  );
}

export async function withdraw(options: ExposureOptions, share: string): Promise<void> {
  await each(options, { share, complaint: 'share not withdrawn' }, (exporter) => exporter.remove(share));
}

/** What clients are sending ends, or is taken back, while the mount still takes writes. */
export async function quiesce(options: ExposureOptions, share: string): Promise<void> {
  await each(options, { share, complaint: 'share not cleared of uploads' }, async (exporter) =>
    exporter.quiesce?.(share),
  );
}

async function each(
  options: ExposureOptions,
  about: { share: string; complaint: string },
  act: (exporter: Exporter) => Promise<void>,
): Promise<void> {
  await Promise.all(
    options.exporters().map(async (exporter) => {
      try {
        await timeBox(options.clock, DEADLINE_MS, (async () => act(exporter))());
      } catch (error) {
        options.log.error({ share: about.share, err: error }, about.complaint);
      }
    }),
  );
}
