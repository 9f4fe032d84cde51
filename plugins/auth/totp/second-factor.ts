/** Makes one examination of a password and a one-time code, which the throttle slows down like that of a password. */
import type { Logger, Secrets } from 'mountkeeper';
import type { WebUser } from '../config.ts';
import type { Examination } from '../verifier.ts';
import type { Codes } from './codes.ts';

export interface SecondFactorParts {
  readonly codes: Codes;
  readonly secrets: () => Secrets;
  readonly log: Logger;
}

export type Holder = Pick<WebUser, 'name' | 'totp_secret'>;

export class SecondFactor {
  readonly #parts: SecondFactorParts;
  #tries = 0;

  constructor(parts: SecondFactorParts) {
    this.#parts = parts;
  }

  /** The code is looked at when the password was right; undefined: none was given. */
  after(password: Examination, holder: Holder, code: string | undefined): Examination {
    const isAsked = (holder.totp_secret ?? '') !== '';
    // Each code is a new try: one that was wrong or right may be the other by now. Without a code it is the same each
    // time, and another once this user has none any more.
    const more = code !== undefined ? ` ${(this.#tries += 1)}` : isAsked ? ' without a code' : '';
    return {
      id: `${password.id}${more}`,
      verify: async () => (await password.verify()) && (!isAsked || this.#isRight(holder, code)),
    };
  }

  #isRight({ name, totp_secret: wanted = '' }: Holder, code: string | undefined): boolean {
    const { codes, log, secrets } = this.#parts;
    if (code === undefined) return false;
    try {
      return codes.take({ holder: name, secret: secrets().resolve(wanted), code });
    } catch (err) {
      log.error({ err, user: name }, 'totp_secret cannot be read, so this user is not let in');
      return false;
    }
  }
}
