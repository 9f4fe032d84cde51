/** A share's addresses as QR codes for phones; rendered as SVG by the daemon itself. */
import { html } from 'mountkeeper';
import type { Content, Tab, View } from 'mountkeeper';
import { CATALOGUES, everywhere } from '../languages.ts';
import { hostForOthers, isLocalOnly, addressesOf } from './share-data.ts';
import type { ShareAddress } from './share-data.ts';
import { shareId } from '../pages/sources.ts';
import type { Sources } from '../pages/sources.ts';

/** The quiet zone around the code, in modules, as the standard requires. */
export const BORDER = 4;

/** One square per dark module, row by row. */
export function squares(modules: readonly (readonly boolean[])[]): string {
  return modules
    .flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])))
    .join('');
}

interface Code {
  readonly size: number;
  readonly path: string;
}

const ID = 'share-qr';
const CODES = 'codes';
const MOST_KEPT = 200;
const kept = new Map<string, Code>();

async function codeOf(address: string): Promise<Code> {
  const known = kept.get(address);
  if (known) return known;
  // Loaded only when somebody opens a share's page.
  const { encodeQR } = await import('qr');
  const modules = encodeQR(address, 'raw', { border: BORDER });
  const code = { size: modules.length, path: squares(modules) };
  if (kept.size >= MOST_KEPT) kept.clear();
  kept.set(address, code);
  return code;
}

async function drawn(address: string, label: string): Promise<Content> {
  const { size, path } = await codeOf(address);
  return html`<svg
    class="qr"
    viewBox=${`0 0 ${size} ${size}`}
    role="img"
    aria-label=${label}
    shape-rendering="crispEdges"
  >
    <rect width=${size} height=${size} fill="#fff" />
    <path d=${path} fill="#000" />
  </svg>`;
}

async function entry({ protocol, address, shown }: ShareAddress, view: View): Promise<Content> {
  const picture = await drawn(address, view.plain('qr-of', { address: shown }));
  return html`<li>
    ${picture}
    <p>
      <strong>${protocol}</strong> <code><bdi>${shown}</bdi></code>
    </p>
  </li>`;
}

async function codes(sources: Sources, view: View): Promise<Content> {
  const status = sources.record.shares.find(({ name }) => name === view.share);
  if (!status) return null;
  const { config, offers } = sources;
  const host = hostForOthers(view.host);
  const addresses = status.mounted ? addressesOf(status.name, { config, offers, host }) : [];
  const reachable = addresses.filter(({ address }) => !isLocalOnly(address));
  if (reachable.length === 0) return html`<p class="help">${view.t('qr-none')}</p>`;
  return html`<ul class="qrs">
    ${await Promise.all(reachable.map((one) => entry(one, view)))}
  </ul>`;
}

/** Closed on a card, and asked for when somebody opens it: hundreds of cards need no picture. */
export function qrDisclosure(share: string, addresses: readonly ShareAddress[], view: View): Content {
  // Another one when the addresses change: what was drawn of the former ones goes with it.
  const id = `qr-${shareId(addresses.map(({ address }) => address).join(' '))}`;
  return html`<details class="phone" id=${id} data-kept=${id} hx-trigger="toggle" hx-target="find div"
    hx-get=${`/dashboard/parts/${ID}/${CODES}?share=${encodeURIComponent(share)}`}>
    <summary>${view.t('qr')}<span class="unseen"> <bdi>${share}</bdi></span></summary><div></div></details>`;
}

export function qrPanel(sources: Sources): Tab {
  return {
    id: ID,
    place: 'share',
    access: { see: 'viewer' },
    order: 80,
    title: everywhere('qr'),
    texts: CATALOGUES,
    render: (view) => codes(sources, view),
    parts: { [CODES]: (view) => codes(sources, view) },
  };
}
