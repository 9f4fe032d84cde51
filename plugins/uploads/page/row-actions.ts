/** What can be done about one file of the queue, in its row on the page: send it now, download a copy. */
import { createHash } from 'node:crypto';
import { html } from 'mountkeeper';
import type { Content, FileDownloads, LocalText, View } from 'mountkeeper';

export interface QueueRow {
  readonly path: string;
  readonly state: 'waiting' | 'uploading' | 'stuck';
  /** False where there is nothing to download, such as a deletion. */
  readonly hasContent: boolean;
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
      }
    </div>
  </td>`;
}
