/** The page's routes: pages, their streams, parts and actions of tabs, files, preferences, signing out. */
import type {
  Lifecycle,
  Request,
  ResponseObject,
  ResponseToolkit,
  RouteOptions,
  ServerRoute,
} from '@hapi/hapi';
import { eventStream, html, openTo, principalOf } from 'mountkeeper';
import type { Content } from 'mountkeeper';
import { arrivalOf } from './settings/arrival.ts';
import { createView } from './view.ts';
import { everywhere } from './languages.ts';
import { CHART_FILES, OVERVIEW_FILES, SCRIPTS, SETTINGS_FILES } from './assets.ts';
import type { AssetCache } from './assets.ts';
import type { Feeds, PageName, PageRequest } from './live/feeds.ts';
import { navigationOf } from './pages/models.ts';
import { loadLibraries } from './pages/libraries.ts';
import { htmlAnswer, queryOf, takesGzip } from './pages/answer.ts';
import { actionRoute, partRoute } from './pages/tab-routes.ts';
import { preferenceRoute, readerOf, themeOf } from './pages/preferences.ts';
import { shell, toHtml } from './pages/shell.ts';
import type { Reader, Sources } from './pages/sources.ts';
import { SPANS } from './live/series.ts';
import type { Series } from './live/series.ts';
import { spanOf } from './tabs/share-panels.ts';
import { signOutAt, signOutRoute } from './pages/sign-out.ts';

export interface RouteParts {
  readonly sources: Sources;
  /** All throw while the plugin is starting. */
  readonly feeds: () => Feeds;
  readonly assets: () => AssetCache;
  readonly series: () => Series;
  /** Open pages are drawn anew; nothing while the plugin is starting. */
  readonly changed: () => void;
  readonly hasStatusPage: () => boolean;
  readonly isPasswordSet: () => boolean;
}

const NOTHING = "default-src 'none'";
const A_YEAR = 'private, max-age=31536000, immutable';
/**
 * Ignores cookies of other services on this machine. The pages are for everybody who is let in; each tab says who
 * sees it, and who may run its actions.
 */
const OPTIONS: RouteOptions = {
  ...openTo({ role: 'viewer', isPage: true }),
  state: { parse: false, failAction: 'ignore' },
};
/** A screen on the wall is asked by Basic, and so it signs in once: sign-ins end when nobody sits before it. */
const WALL: RouteOptions = { ...OPTIONS, ...openTo({ role: 'viewer' }) };

/** Whoever reads: all who come by one name or token are one; where nobody is asked, all who come from one address. */
function whoReads(request: Request): string {
  const { kind, name } = principalOf(request) ?? { kind: 'from', name: request.client.address };
  return `${kind} ${name}`;
}

function pageRequest(request: Request, page: PageName): PageRequest {
  const query = 'name' in page ? queryOf(request) : {};
  return { who: whoReads(request), page, reader: readerOf(request), query };
}

/** Address of the stream of a page's changes. */
function streamOf(page: PageName, query: Readonly<Record<string, string>>, since: string): string {
  const name = 'name' in page ? { name: page.name } : {};
  const wanted = new URLSearchParams({
    ...query,
    ':page': page.kind,
    ...(name.name === undefined ? {} : { ':name': name.name }),
    ':since': since,
  });
  return `/dashboard/events?${wanted.toString()}`;
}

function scriptsOf(page: PageName): readonly string[] {
  if (page.kind === 'overview') return [...SCRIPTS, ...OVERVIEW_FILES];
  if (page.kind === 'share') return [...SCRIPTS, ...CHART_FILES];
  return page.kind === 'tab' && page.name === 'settings' ? [...SCRIPTS, ...SETTINGS_FILES] : SCRIPTS;
}

async function ofEveryPage(parts: RouteParts, request: Request, reader: Reader) {
  const { build } = await parts.assets().load();
  return {
    view: createView(reader),
    theme: themeOf(request),
    path: `${request.path}${request.url.search}`,
    navigation: navigationOf(parts.sources, reader, request.path),
    build,
    asset: (name: string) => `/dashboard/assets/${build}/${name}`,
    signOutAt: parts.isPasswordSet() ? signOutAt(request) : undefined,
  };
}

/** What an action says to a browser without scripts. */
async function plainPage(parts: RouteParts, request: Request, said: Content): Promise<string> {
  const common = await ofEveryPage(parts, request, readerOf(request));
  const title = common.view.text(everywhere('overview'));
  const main = toHtml(html`<section class="card">${said}</section>`);
  return shell({ ...common, title, main, events: undefined, scripts: [], isBare: true, arrival: null });
}

async function answerPage(
  parts: RouteParts,
  request: Request,
  h: ResponseToolkit,
  page: PageName,
): Promise<ResponseObject> {
  const asked = pageRequest(request, page);
  const isThere = page.kind !== 'status' || parts.hasStatusPage();
  const feed = isThere ? await parts.feeds().open(asked) : undefined;
  const common = {
    ...(await ofEveryPage(parts, request, asked.reader)),
    scripts: scriptsOf(page),
    isBare: page.kind === 'status' && isThere,
    arrival: page.kind === 'status' ? null : arrivalOf(parts.sources, asked.reader),
  };
  if (page.kind === 'tab') request.app.isRefused = parts.sources.isRefused(page.name, asked.reader);
  if (!feed)
    return htmlAnswer(
      request,
      h,
      shell({
        ...common,
        title: common.view.text(everywhere('not-found')),
        events: undefined,
        main: toHtml(html`<h1>${common.view.t('not-found')}</h1><p>${common.view.t('not-found-help')}</p>`),
      }),
      404,
    );
  const { position } = feed;
  return htmlAnswer(
    request,
    h,
    shell({
      ...common,
      title: feed.model.title,
      events: streamOf(page, asked.query, position),
      main: feed.html(),
    }),
  );
}

/** The page of a stream, and what its reader has seen. */
function streamRequest(
  request: Request,
): { readonly asked: PageRequest; readonly seen: string | undefined } | undefined {
  const { ':page': kind, ':name': name = '', ':since': since, ...query } = queryOf(request);
  const last = request.headers['last-event-id'];
  const seen = typeof last === 'string' && last !== '' ? last : since;
  const reader = readerOf(request);
  const who = whoReads(request);
  if (kind === 'overview' || kind === 'status')
    return { asked: { who, page: { kind }, reader, query: {} }, seen };
  return kind === 'share' || kind === 'tab'
    ? { asked: { who, page: { kind, name }, reader, query }, seen }
    : undefined;
}

export function routes(parts: RouteParts): ServerRoute[] {
  return declared(parts).map((route) => ({
    ...route,
    handler: whenReady(route.handler as Lifecycle.Method),
  }));
}

/** What only rendering needs is loaded by the first request, not at the daemon's start. */
function whenReady(handler: Lifecycle.Method): Lifecycle.Method {
  return async function (request, h) {
    await loadLibraries();
    return handler.call(this, request, h);
  };
}

/** What pages load after the document: their stream, files and charts. */
function fileRoutes(parts: RouteParts): ServerRoute[] {
  return [
    {
      method: 'GET',
      path: '/dashboard/events',
      options: OPTIONS,
      handler: async (request, h) => {
        const stream = streamRequest(request);
        if (!stream || (stream.asked.page.kind === 'status' && !parts.hasStatusPage()))
          return h.response().code(404);
        // A page that was open while the daemon restarted first asks for its stream, and is told whether it
        // is out of date.
        await parts.assets().load();
        return eventStream(
          request,
          h,
          (sink) => parts.feeds().join(stream.asked, sink, stream.seen) as () => void,
          { retryMs: 1_000 },
        );
      },
    },
    {
      method: 'GET',
      path: '/dashboard/assets/{build}/{name}',
      options: OPTIONS,
      handler: async (request, h) => {
        const asset = (await parts.assets().load()).find(String(request.params['name']));
        if (!asset) return h.response().code(404);
        const isZipped = takesGzip(request);
        const response = h
          .response(isZipped ? asset.zipped : asset.plain)
          .type(asset.type)
          .header('cache-control', A_YEAR)
          .header('vary', 'accept-encoding')
          .header('content-security-policy', NOTHING);
        return isZipped ? response.header('content-encoding', 'gzip') : response;
      },
    },
    {
      method: 'GET',
      path: '/dashboard/charts/{share}',
      options: OPTIONS,
      handler: (request, h) => {
        const span = spanOf(queryOf(request)['span']);
        const { stepMs, points } = SPANS[span];
        const until = Math.ceil(parts.sources.clock.now() / 1_000);
        return h.response({
          stepSeconds: stepMs / 1_000,
          from: until - (stepMs / 1_000) * points,
          until,
          points: parts.series().of(String(request.params['share']), span),
        });
      },
    },
  ];
}

function declared(parts: RouteParts): ServerRoute[] {
  const page = (
    path: string,
    pageOf: (request: Request) => PageName,
    options: RouteOptions = OPTIONS,
  ): ServerRoute => ({
    method: 'GET',
    path,
    options,
    handler: (request, h) => answerPage(parts, request, h, pageOf(request)),
  });
  return [
    {
      method: 'GET',
      path: '/',
      options: OPTIONS,
      handler: (request, h) =>
        queryOf(request)['overview'] === undefined && parts.sources.isFirstRun(readerOf(request))
          ? h.redirect('/tabs/setup').code(303)
          : answerPage(parts, request, h, { kind: 'overview' }),
    },
    page('/status', () => ({ kind: 'status' }), WALL),
    page('/shares/{name}', (request) => ({ kind: 'share', name: String(request.params['name']) })),
    page('/tabs/{name}', (request) => ({ kind: 'tab', name: String(request.params['name']) })),
    ...fileRoutes(parts),
    partRoute(parts.sources, OPTIONS),
    actionRoute(parts.sources, {
      options: OPTIONS,
      page: (request, said) => plainPage(parts, request, said),
      changed: () => parts.changed(),
    }),
    preferenceRoute(OPTIONS),
    signOutRoute(OPTIONS),
  ];
}
