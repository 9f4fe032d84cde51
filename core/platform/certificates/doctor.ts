/** What `mountkeeper doctor` says of a server's certificate. Works without a running daemon. */
import type { Check } from '../../contract/notifications.ts';
import type { TlsConfig } from '../../contract/http.ts';
import { readPair } from './pair.ts';
import { existingSelfMade } from './self-made.ts';

const SOON_MS = 14 * 86_400_000;

export interface CertificateQuestion {
  /** The path of its key, such as `web.tls`. */
  readonly label: string;
  readonly stateDir: string;
  /** In milliseconds since 1970. */
  readonly now: number;
}

export function certificateCheck(tls: TlsConfig, { label, stateDir, now }: CertificateQuestion): Check {
  const title = `${label} certificate`;
  const { certificate = '', key = '' } = tls;
  try {
    const pair = tls.self_made ? existingSelfMade(stateDir) : readPair({ certificate, key });
    if (!pair) return { title, result: 'ok', detail: 'will be made at the start', advice: '' };
    const end = new Date(pair.endsAt).toISOString().slice(0, 10);
    const detail = `until ${end}, SHA-256 ${pair.fingerprint}`;
    if (pair.endsAt - now > SOON_MS || tls.self_made) return { title, result: 'ok', detail, advice: '' };
    return {
      title,
      result: 'warning',
      detail,
      advice: `Put a new certificate in the place of ${certificate}.`,
    };
  } catch (error) {
    return {
      title,
      result: 'error',
      detail: (error as Error).message,
      advice: `Correct ${label}, or the files.`,
    };
  }
}
