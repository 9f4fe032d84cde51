import { Joi } from 'mountkeeper';
import type { Config } from 'mountkeeper';
import { DEFAULT_PROOF, PROOFS } from './proof/same-content.ts';
import type { Proof } from './proof/same-content.ts';

declare module 'mountkeeper' {
  interface ShareConfig {
    upload_proof?: Proof;
  }
}

export const shareSchema = Joi.object({
  upload_proof: Joi.string()
    .valid(...PROOFS)
    .optional()
    .meta({ tier: 'live' })
    .description(
      'How the daemon makes sure that the remote has what was brought there: ' +
        '"hash" (the default) compares the remote\'s hash; where it has none the size and the time, and where it ' +
        'keeps no times either, the content is read back. "read-back" reads every file back, which takes as ' +
        'long as a download. "size" compares size and time alone.',
    ),
});

export function proofOf(config: Config, shareName: string): Proof {
  return config.shares.find(({ name }) => name === shareName)?.upload_proof ?? DEFAULT_PROOF;
}
