/** What can be done about one file of the queue, in its row on the page: send it now, download a copy, discard it. */
import { createHash } from 'node:crypto';
import { html } from 'mountkeeper';
import type { Content, FileDownloads, LocalText, View } from 'mountkeeper';

export interface QueueRow {
  readonly path: string;
  readonly state: 'waiting' | 'uploading' | 'stuck';
  /** False where there is nothing to download, such as a deletion. */
  readonly hasContent: boolean;
  /** Of a file with content in an upper folder: what may be discarded. */
  readonly version?: string | undefined;
  readonly bytes: number;
}

export interface RowTools {
  readonly text: (key: string) => LocalText;
  /** Undefined where no plugin offers downloads. */
  readonly downloads: FileDownloads | undefined;
}

/** By it the page keeps a row with its buttons, and who is at one, while others come and go. */
export function rowId(path: string): string {
  return `queue-${createHash('sha256').update(path).digest('hex').slice(0, 16)}`;
}

/** Asks, and names the file. */
function discardButton(
  { path, state, version, bytes }: QueueRow,
  text: RowTools['text'],
  view: View,
): Content {
  if (version === undefined || state === 'uploading') return null;
  return view.button({
    action: 'discard',
    label: text('discard'),
    about: path,
    values: { path, version },
    confirm: view.plain('discard-confirm', { path, size: view.bytes(bytes) }),
  });
}

export function rowActions(row: QueueRow, { text, downloads }: RowTools, view: View): Content {
  const { path, state } = row;
  // Downloads are for administrators alone.
  const hasCopy = row.hasContent && view.role === 'admin';
  const copy = hasCopy ? downloads?.address(view.share ?? '', path) : undefined;
  const retry =
    state === 'uploading'
      ? null
      : view.button({
          action: 'retry',
          label: text(state === 'stuck' ? 'retry' : 'send'),
          about: path,
          values: { path },
        });
  const label = view.text(text('download'));
  return html`<td>
    <div class="row-actions">
      ${retry}${
        copy === undefined
          ? null
          : html`<a href=${copy} download aria-label=${`${label} ${path}`}>${label}</a>`
      }${discardButton(row, text, view)}
    </div>
  </td>`;
}
