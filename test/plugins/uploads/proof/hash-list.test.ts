/** The form of a media hash list: its elements in the order of the schema, and names whatever they hold. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hashListOf } from '../../../../plugins/uploads/proof/hash-list.ts';
import type { Receipt } from '../../../../plugins/uploads/proof/receipt.ts';

const AT = Date.parse('2026-11-22T14:05:00Z');
const OPTIONS = { createdAt: AT, host: 'nas & co', version: '1.2.3', share: 'files' };
const COMMENT =
  'Share files, folder reels/A: 2 files are proved to be on the remote ' +
  '(1 of them lie on the remote alone), 1 entries are not.';
const EMPTY: Receipt = { root: '', proved: [], unproved: [] };

describe('a media hash list', () => {
  it('holds each file with its size, time, hash and the time of the proof', () => {
    const file = { bytes: 5, hash: { kind: 'md5', value: '0a' }, provedAt: AT + 1_000, isCompared: true };
    const text = hashListOf(
      {
        root: 'reels/A',
        proved: [
          { ...file, path: 'a <b> & "c"\n.mov', modifiedMs: AT - 500 },
          { ...file, path: 'd', isCompared: false },
        ],
        unproved: [{ path: 'reels/A/e', reason: 'It waits.' }],
      },
      OPTIONS,
    );
    assert.equal(
      text,
      `<?xml version="1.0" encoding="UTF-8"?>
<hashlist version="2.0" xmlns="urn:ASC:MHL:v2.0">
  <creatorinfo>
    <creationdate>2026-11-22T14:05:00.000Z</creationdate>
    <hostname>nas &amp; co</hostname>
    <tool version="1.2.3">Mountkeeper (plugin uploads)</tool>
    <comment>${COMMENT}</comment>
  </creatorinfo>
  <processinfo>
    <process>in-place</process>
  </processinfo>
  <hashes>
    <hash>
      <path size="5" lastmodificationdate="2026-11-22T14:04:59.500Z">a &lt;b&gt; &amp; &quot;c&quot;&#10;.mov</path>
      <md5 action="original" hashdate="2026-11-22T14:05:01.000Z">0a</md5>
    </hash>
    <hash>
      <path size="5">d</path>
      <md5 action="original" hashdate="2026-11-22T14:05:01.000Z">0a</md5>
    </hash>
  </hashes>
</hashlist>
`,
    );
  });

  it('has no element for hashes when there are none: the schema wants one at least', () => {
    assert.doesNotMatch(hashListOf(EMPTY, OPTIONS), /<hashes>/);
  });
});
