/** What a file worker can be asked to do below a mount. */
export interface WriteRequest {
  readonly op: 'write-many';
  readonly dir: string;
  readonly ledger: string;
  readonly bytes: number;
  readonly count: number;
  readonly prefix?: string;
  readonly pieceDelayMs?: number;
  readonly pauseMs?: number;
}

export type FileRequest =
  | WriteRequest
  | {
      readonly op: 'checksum' | 'hold-open' | 'list' | 'mkdir' | 'rmdir' | 'unlink' | 'size';
      readonly path: string;
    }
  | { readonly op: 'time-reading' | 'time-listing'; readonly path: string; readonly server: number }
  | { readonly op: 'write'; readonly path: string; readonly bytes: number; readonly pieceDelayMs?: number }
  | { readonly op: 'hold-for-writing'; readonly path: string; readonly bytes: number }
  | { readonly op: 'release'; readonly target: number }
  | { readonly op: 'read-again'; readonly path: string; readonly sha256: string };
