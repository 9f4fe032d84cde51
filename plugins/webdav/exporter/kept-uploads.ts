import { logIgnored } from 'mountkeeper';
import type { Clock, Logger, Notice } from 'mountkeeper';
import type { KeptContent } from '../proxy/state.ts';
import type { WebdavPaths } from './paths.ts';
import { fetchKept } from './proxy-process.ts';

const ANSWER_MS = 2_000;

/** What the proxy holds of uploads that did not come to their end: people are told of it, and where it lies. */
export class KeptUploads {
  readonly #tools: { readonly clock: Clock; readonly log: Logger; readonly paths: WebdavPaths };
  #kept: readonly KeptContent[] = [];

  constructor(tools: { readonly clock: Clock; readonly log: Logger; readonly paths: WebdavPaths }) {
    this.#tools = tools;
  }

  /** Never rejects: what was known goes on being told. */
  async read(signal: AbortSignal): Promise<void> {
    const { clock, log, paths } = this.#tools;
    const kept = await fetchKept(paths, clock.deadline(ANSWER_MS, signal)).catch(
      logIgnored(log, 'asking the WebDAV proxy what waits of uploads'),
    );
    if (kept) this.#kept = kept;
  }

  notices(): readonly Notice[] {
    const [first] = this.#kept;
    if (!first) return [];
    const others = this.#kept.length - 1;
    return [
      {
        level: 'warning',
        message:
          `WebDAV: an upload of '${first.share}/${first.path}' did not come to its end and cannot be put in its ` +
          `place now; its content is kept in ${first.file} for a month: copy it to where it belongs, or remove it` +
          (others === 0 ? '' : ` (and ${others} more)`),
      },
    ];
  }
}
