/**
 * Proof that files are on the remote, on the page of a share with a write layer: a comparison, and a receipt to
 * keep. Both take as long as they take: what the click shows asks again by itself.
 */
import { actionForm, html } from 'mountkeeper';
import type { Content, Outcome, View } from 'mountkeeper';
import type { ReceiptBody } from '../proof/receipt-jobs.ts';
import type { VerifyBody } from '../proof/verify-jobs.ts';
import type { Proofs } from '../routes.ts';
import type { ManagedUploads } from '../transfer/managed.ts';

const MOST_SHOWN = 100;
const LONGEST_PATH = 4_096;

type Kind = keyof Proofs;

export interface ProofSources {
  readonly proofs: Proofs;
  /** Undefined for a share without a write layer. */
  readonly uploadsOf: (view: View) => ManagedUploads | undefined;
}

export function proofForm({ uploadsOf }: ProofSources, view: View): Content {
  if (!uploadsOf(view) || !view.may('prove')) return null;
  const fields = html`<label
      >${view.t('proof-path')} <input name="path" autocomplete="off" aria-describedby="proof-help"
    /></label>
    <button type="submit" name="what" value="verify">${view.t('verify')}</button>
    <button type="submit" name="what" value="receipt">${view.t('receipt')}</button>`;
  const help = html`<p id="proof-help" class="help">${view.t('proof-help')}</p>`;
  return html`<details>
    <summary>${view.t('proof')}</summary>
    ${actionForm(view, { action: 'prove', fields, help })}
  </details>`;
}

/** Relative to the share; undefined for what is no path in it. */
function pathOf(given = ''): string | undefined {
  const names = given.split('/').filter((name) => name !== '' && name !== '.');
  const isPlain = given.length <= LONGEST_PATH && !given.includes('\0') && !names.includes('..');
  return isPlain ? names.join('/') : undefined;
}

/** Throws a plain sentence when too many are under way. */
export function prove({ proofs, uploadsOf }: ProofSources, view: View): Outcome {
  const uploads = uploadsOf(view);
  if (!uploads) return { ok: false, message: view.plain('no-layer') };
  const path = pathOf(view.form['path']);
  if (path === undefined) return { ok: false, message: view.plain('proof-no-path') };
  const kind: Kind = view.form['what'] === 'receipt' ? 'receipt' : 'verify';
  const id = proofs[kind].start({ share: view.share ?? '', path, uploads });
  return { ok: true, message: '', content: running({ kind, id }, view.t('proof-begins'), view) };
}

interface Job {
  readonly kind: Kind;
  readonly id: string;
}

/** Asks again in a second; every five, where no answer came. */
function running({ kind, id }: Job, said: Content, view: View): Content {
  return html`<p
    hx-get=${view.part('proof', { kind, id })}
    hx-trigger="load delay:1s, every 5s"
    hx-target="this"
    hx-swap="outerHTML"
    hx-disabled-elt="unset"
  >
    ${said}
  </p>`;
}

function list(lines: readonly { readonly path: string; readonly reason: string }[], view: View): Content {
  if (lines.length === 0) return null;
  const more = lines.length - MOST_SHOWN;
  return html`<ul class="notices">
      ${lines.slice(0, MOST_SHOWN).map(
        ({ path, reason }) =>
          html`<li data-tone="bad">
              <p><bdi>${path}</bdi> <small><bdi>${view.said(reason)}</bdi></small></p>
            </li>`,
      )}
    </ul>
    ${more > 0 ? html`<p class="help">${view.t('more', { count: more })}</p>` : null}`;
}

function verified({ results, is_equal: isEqual, waiting }: VerifyBody, view: View): Content {
  const wrong = results.filter(({ result }) => result === 'differs');
  const said = view.t(wrong.length === 0 ? 'verified' : 'verified-not', {
    count: results.length,
    wrong: wrong.length,
  });
  const looks = results.filter(({ result }) => result === 'size').length;
  const reason = view.plain('differs');
  return html`<p class="outcome" data-tone=${isEqual ? 'good' : 'bad'}>${said}</p>
    ${waiting === 0 ? null : html`<p class="help">${view.t('verified-waiting', { count: waiting })}</p>`}
    ${looks === 0 ? null : html`<p class="help">${view.t('verified-looks', { count: looks })}</p>`}
    ${list(
      wrong.map(({ path }) => ({ path, reason })),
      view,
    )}`;
}

/** The daemon keeps the list while somebody asks about it: while the page is open. */
function received({ kind, id }: Job, { is_complete: isWhole, unproved }: ReceiptBody, view: View): Content {
  const address = `/api/queue/${encodeURIComponent(view.share ?? '')}/receipt/${id}/hash-list`;
  return html`<p class="outcome" data-tone=${isWhole ? 'good' : 'bad'}>
      ${view.t(isWhole ? 'proved' : 'proved-not', { count: unproved.length })}
    </p>
    ${list(unproved, view)}
    <p
      hx-get=${view.part('proof', { kind, id })}
      hx-trigger="every 20s"
      hx-target="this"
      hx-swap="none"
      hx-disabled-elt="unset"
    >
      <a href=${address} download>${view.t('receipt-file')}</a>
    </p>`;
}

/** What the click shows, as far as it is. */
export function proofPart({ proofs }: ProofSources, view: View): Content {
  const { kind: asked, id = '' } = view.query;
  if (!view.may('prove')) return null;
  const kind: Kind = asked === 'receipt' ? 'receipt' : 'verify';
  const body = proofs[kind].get(view.share ?? '', id);
  if (!body) return html`<p class="outcome" data-tone="bad">${view.t('proof-gone')}</p>`;
  const { state, checked, files, message } = body;
  if (state === 'running') return running({ kind, id }, view.t('proof-running', { checked, files }), view);
  if (state === 'failed')
    return html`<p class="outcome" data-tone="bad"><bdi>${view.said(message)}</bdi></p>`;
  return 'results' in body ? verified(body, view) : received({ kind, id }, body, view);
}
