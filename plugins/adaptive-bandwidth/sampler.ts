import type { LiveShare, Mount } from 'mountkeeper';
import type { Sample } from './decide.ts';

/** How long after the end of a sample its figures are waited for. */
const FIGURES_WITHIN_MS = 7_000;

interface Mark {
  readonly mount: Mount;
  readonly uploadedBytes: number;
  readonly takenAtMs: number;
}

/**
 * Measures the uploads of all shares together. Called often, it completes a sample whenever its period is
 * over.
 */
export class Sampler {
  readonly #marks = new Map<string, Mark>();
  #begunAtMs: number | undefined;
  #rate = 0;
  #isBusy = true;

  /** `limit`: the current one. Returns a sample when one has just been completed. */
  look(
    shares: readonly LiveShare[],
    at: { readonly nowMs: number; readonly lastsMs: number; readonly limit: number },
  ): Sample | undefined {
    if (!isUploading(shares)) this.#isBusy = false;
    if (this.#begunAtMs === undefined) {
      this.#measure(shares);
      this.#begin(at.nowMs);
      return undefined;
    }
    const lastedMs = at.nowMs - this.#begunAtMs;
    if (
      lastedMs < at.lastsMs ||
      (this.#isWaitingForFigures(shares) && lastedMs < at.lastsMs + FIGURES_WITHIN_MS)
    )
      return undefined;
    this.#measure(shares);
    // A line that transfers nothing at all is not congested but down, which is detected a little later.
    const sample = { rate: this.#rate, limit: at.limit, isBusy: this.#isBusy && this.#rate > 0 };
    this.#begin(at.nowMs);
    return sample;
  }

  reset(): void {
    this.#marks.clear();
    this.#begunAtMs = undefined;
  }

  #begin(nowMs: number): void {
    this.#begunAtMs = nowMs;
    this.#isBusy = true;
  }

  /** Figures may be taken less often than samples. */
  #isWaitingForFigures(shares: readonly LiveShare[]): boolean {
    return shares.some(
      ({ spec, figures }) =>
        figures?.stats.uploading === true &&
        figures.takenAtMs <= (this.#marks.get(spec.share.name)?.takenAtMs ?? -Infinity),
    );
  }

  /**
   * Each share is measured by the times of its own figures. A share that was mounted again, or cannot tell
   * uploads from downloads, invalidates the sample.
   */
  #measure(shares: readonly LiveShare[]): void {
    this.#rate = 0;
    const former = new Map(this.#marks);
    this.#marks.clear();
    for (const share of shares) {
      const { name } = share.spec.share;
      const mark = markOf(share);
      const last = former.get(name);
      const rate = mark && last && rateBetween(last, mark);
      if (rate === undefined && share.figures?.stats.uploading === true) this.#isBusy = false;
      this.#rate += rate ?? 0;
      if (mark) this.#marks.set(name, mark);
    }
  }
}

function markOf({ mount, figures }: LiveShare): Mark | undefined {
  const uploadedBytes = figures?.stats.uploadedBytes;
  return mount && figures && uploadedBytes !== undefined
    ? { mount, uploadedBytes, takenAtMs: figures.takenAtMs }
    : undefined;
}

function rateBetween(last: Mark, mark: Mark): number | undefined {
  if (last.mount !== mark.mount || mark.takenAtMs <= last.takenAtMs) return undefined;
  return (Math.max(0, mark.uploadedBytes - last.uploadedBytes) * 1_000) / (mark.takenAtMs - last.takenAtMs);
}

/** Something is being uploaded to a remote that answers. */
function isUploading(shares: readonly LiveShare[]): boolean {
  const uploading = shares.filter(({ figures }) => figures?.stats.uploading === true);
  return uploading.length > 0 && uploading.every(({ remoteAnswers }) => remoteAnswers !== false);
}
