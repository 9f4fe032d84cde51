import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { releaseKey, verifiedChecksums } from '../../../../plugins/mount/releases/signed-checksums.ts';
import { signedText, signingKey } from '../../../support/mount/release-mirror.ts';

/** Of rclone's own tests of `rclone selfupdate`: signed by the key that signs its releases. */
const BY_RCLONE = `-----BEGIN PGP SIGNED MESSAGE-----
Hash: SHA1

b20b47f579a2c790ca752fb5d8e5651fade7d5867cbac0a4f71e805fc5c468d0  archive.zip
-----BEGIN PGP SIGNATURE-----

iF0EARECAB0WIQT79zfs6firGGBL0qyTk14C/ztU+gUCZS+oVQAKCRCTk14C/ztU
+lNsAJ9XRiODlM4fIW9yqiltO3N+lLeucwCfRzD3cXk6BCB5wdz7pTgnItk9N74=
=1GTr
-----END PGP SIGNATURE-----
`;
const SUM = 'b20b47f579a2c790ca752fb5d8e5651fade7d5867cbac0a4f71e805fc5c468d0';

describe('checksums that rclone has signed', () => {
  it('are taken with the key that comes with Mountkeeper', async () => {
    assert.deepEqual([...(await verifiedChecksums(BY_RCLONE, await releaseKey()))], [['archive.zip', SUM]]);
  });

  it('are refused when a single letter differs', async () => {
    const forged = BY_RCLONE.replace('b20b', 'c20b');
    await assert.rejects(
      verifiedChecksums(forged, await releaseKey()),
      /signature of the checksums is wrong/,
    );
    const renamed = BY_RCLONE.replace('archive.zip', 'archive2.zip');
    await assert.rejects(
      verifiedChecksums(renamed, await releaseKey()),
      /signature of the checksums is wrong/,
    );
  });

  it('are refused without a signature, and with that of another key', async () => {
    const text = `${SUM}  archive.zip\n`;
    await assert.rejects(verifiedChecksums(text, await releaseKey()), /are not signed/);
    const cut = BY_RCLONE.slice(0, BY_RCLONE.indexOf('iF0'));
    await assert.rejects(verifiedChecksums(cut, await releaseKey()), /signature cannot be read/);
    const other = await signingKey();
    await assert.rejects(verifiedChecksums(await signedText(text, other), await releaseKey()), /another key/);
    assert.equal((await verifiedChecksums(await signedText(text, other), other)).get('archive.zip'), SUM);
  });

  it('hold nothing that stands beside the signed text', async () => {
    const key = await signingKey();
    const signed = await signedText(`${SUM}  archive.zip\n`, key);
    const beside = `${'1'.repeat(64)}  archive.zip\n${signed}${'2'.repeat(64)}  other.zip\n`;
    assert.deepEqual([...(await verifiedChecksums(beside, key))], [['archive.zip', SUM]]);
    const amongHeaders = signed.replace('\n\n', `\n${'1'.repeat(64)}  archive.zip\n\n`);
    await assert.rejects(verifiedChecksums(amongHeaders, key), /signature cannot be read/);
    const inside = signed.replace('archive.zip\r\n', `archive.zip\r\n${'2'.repeat(64)}  other.zip\r\n`);
    await assert.rejects(verifiedChecksums(inside, key), /signature of the checksums is wrong/);
  });

  it('are refused with two sums for one name', async () => {
    const key = await signingKey();
    const twice = await signedText(`${SUM}  a.zip\n${'1'.repeat(64)}  a.zip\n`, key);
    await assert.rejects(verifiedChecksums(twice, key), /two sums for a\.zip/);
  });
});
