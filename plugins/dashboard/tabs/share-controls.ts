/** The dashboard's own actions for a share, and the cards next to the shares. */
import { rateBytes } from 'mountkeeper';
import type { Config, Outcome, PluginContext, PluginInfo, Tab, View } from 'mountkeeper';
import { CATALOGUES, everywhere } from '../languages.ts';
import { limitForm, limitPanel } from '../overview/limit.ts';
import { certificatesPanel, serversPanel } from '../overview/panels.ts';
import { goOnAll, pauseAll, pauseButton, pausePanel } from '../overview/pause-all.ts';
import type { Sources } from '../pages/sources.ts';

async function reconnect(ctx: PluginContext, share: string): Promise<Outcome> {
  if (!ctx.use('config').current.config.shares.some(({ name }) => name === share))
    return { ok: false, message: everywhere('share-gone') };
  await ctx.send('reconnect', share);
  return { ok: true, message: everywhere('reconnecting') };
}

async function setLimit(ctx: PluginContext, { form: { up = '', down = '' } }: View): Promise<Outcome> {
  for (const rate of [up, down]) {
    try {
      rateBytes(rate);
    } catch (error) {
      return { ok: false, message: (error as Error).message };
    }
  }
  await ctx.send('bwlimit', { up, down });
  return { ok: true, message: everywhere('limit-done') };
}

/** The servers are plugins: one that is not there, or is switched off, is off whatever its section still says. */
export function isServerOn(
  section: 'smb' | 'nfs' | 'webdav',
  config: Readonly<Config>,
  plugins: readonly Pick<PluginInfo, 'name' | 'state'>[],
): boolean {
  const { enabled } =
    (config as Partial<Record<typeof section, { readonly enabled?: boolean }>>)[section] ?? {};
  return enabled === true && plugins.some(({ name, state }) => name === section && state !== 'disabled');
}

export function ownTabs(ctx: PluginContext, sources: Sources): readonly Tab[] {
  return [
    {
      id: 'share-controls',
      place: 'share',
      order: 10,
      title: everywhere('share'),
      texts: CATALOGUES,
      access: { see: 'viewer', act: { reconnect: 'operator' } },
      render: () => null,
      actions: { reconnect: (view) => reconnect(ctx, view.share ?? '') },
      buttons: (view) => [
        {
          action: 'reconnect',
          label: everywhere('reconnect'),
          confirm: view.plain('reconnect-confirm', { share: view.share ?? '' }),
        },
      ],
    },
    {
      id: 'servers',
      place: 'card',
      order: 10,
      title: everywhere('servers'),
      access: { see: 'viewer' },
      texts: CATALOGUES,
      render: (view) => [
        serversPanel(
          {
            record: sources.record,
            offers: sources.offers,
            host: view.host,
            isOn: (section) => isServerOn(section, sources.config, ctx.use('plugins').list()),
          },
          view,
        ),
        certificatesPanel(sources.certificates, view),
      ],
    },
    {
      id: 'limit',
      place: 'card',
      order: 20,
      title: everywhere('limit'),
      access: { see: 'viewer', act: { set: 'operator', pause: 'operator', 'go-on': 'operator' } },
      texts: CATALOGUES,
      render: (view) => [
        limitPanel(ctx.use('bandwidth').read(), view),
        pausePanel(ctx.use('shares').list(), view),
      ],
      controls: (view) => [
        view.may('set') && limitForm(view.action('set'), ctx.use('bandwidth').read(), view),
        pauseButton(ctx.use('shares').list(), view),
      ],
      actions: {
        set: (view) => setLimit(ctx, view),
        pause: () => pauseAll(ctx),
        'go-on': () => goOnAll(ctx),
      },
    },
  ];
}
