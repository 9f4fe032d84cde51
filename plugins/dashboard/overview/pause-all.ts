/** "Pause uploads for 1 hour", for every share at once: a button below the limit, and what came of it. */
import { html } from 'mountkeeper';
import type { Content, LiveShare, Mount, Outcome, PluginContext, View } from 'mountkeeper';
import { everywhere } from '../languages.ts';

const PAUSE_MS = 3_600_000;
const ANSWER_MS = 10_000;

interface MountedShare {
  readonly name: string;
  readonly mount: Mount;
}

/** Mounted shares, as far as pausing is concerned. */
interface Pausing {
  /** Can be paused. */
  readonly shares: readonly MountedShare[];
  /** Also those that could not be paused any more, since settings have changed. */
  readonly paused: readonly (MountedShare & { readonly until: number })[];
  /** Why some cannot be paused; the first reason. */
  readonly obstacle: { readonly names: readonly string[]; readonly reason: string } | undefined;
}

export function pausingOf(live: Iterable<LiveShare>): Pausing {
  const mounted = [...live].flatMap(({ spec, mount }) =>
    mount?.uploadPause ? [{ name: spec.share.name, mount, pause: mount.uploadPause }] : [],
  );
  const hindered = mounted.filter(({ pause }) => pause.obstacle !== undefined);
  const reason = hindered[0]?.pause.obstacle;
  return {
    shares: mounted.filter(({ pause }) => pause.obstacle === undefined),
    paused: mounted.flatMap(({ name, mount, pause: { until } }) =>
      until === undefined ? [] : [{ name, mount, until }],
    ),
    obstacle: reason === undefined ? undefined : { names: hindered.map(({ name }) => name), reason },
  };
}

/** Which shares are paused until when, and a button that ends it. */
export function pausePanel(live: Iterable<LiveShare>, view: View): Content {
  const { paused, obstacle, shares } = pausingOf(live);
  const [first] = paused;
  const isAll = paused.length === shares.length;
  return [
    first &&
      html`<p class="reason">
          ${view.t(isAll ? 'paused-all' : 'paused-some', {
            time: view.time(Math.min(...paused.map(({ until }) => until))),
            names: html`<bdi>${paused.map(({ name }) => name).join(view.plain('list-comma'))}</bdi>`,
          })}
        </p>
        <div class="actions">${view.button({ action: 'go-on', label: everywhere('pause-end') })}</div>`,
    obstacle &&
      html`<p class="help">
        ${view.t('pause-not', {
          names: html`<bdi>${obstacle.names.join(view.plain('list-comma'))}</bdi>`,
          reason: view.said(obstacle.reason),
        })}
      </p>`,
  ];
}

/** Nothing where no share can be paused: the panel says why. */
export function pauseButton(live: Iterable<LiveShare>, view: View): Content {
  const { shares, obstacle } = pausingOf(live);
  if (shares.length === 0 && obstacle) return null;
  return html`<div class="actions">
    ${view.button({ action: 'pause', label: everywhere('pause-all'), confirm: everywhere('pause-confirm') })}
  </div>`;
}

async function forAll(
  ctx: PluginContext,
  shares: readonly MountedShare[],
  act: (mount: Mount, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const signal = ctx.use('clock').deadline(ANSWER_MS);
  await Promise.all(
    shares.map(({ name, mount }) =>
      act(mount, signal).catch((error: unknown) => {
        throw new Error(`${name}: ${(error as Error).message}`, { cause: error });
      }),
    ),
  );
}

export async function pauseAll(ctx: PluginContext): Promise<Outcome> {
  const until = ctx.use('clock').now() + PAUSE_MS;
  const { shares } = pausingOf(ctx.use('shares').list());
  await forAll(ctx, shares, async (mount, signal) => mount.uploadPause?.set(until, signal));
  return { ok: shares.length > 0, message: everywhere(shares.length > 0 ? 'pause-done' : 'pause-none') };
}

export async function goOnAll(ctx: PluginContext): Promise<Outcome> {
  const { paused } = pausingOf(ctx.use('shares').list());
  await forAll(ctx, paused, (mount, signal) => mount.flush(signal));
  return { ok: true, message: everywhere('pause-ended') };
}
