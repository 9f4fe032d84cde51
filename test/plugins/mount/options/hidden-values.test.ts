import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hideOption, masked } from '../../../../plugins/mount/options/hidden-values.ts';
import { inPlainWords } from '../../../../plugins/mount/rclone/error-messages.ts';

describe('what rclone says', () => {
  it('is shown without what the configuration hides', () => {
    hideOption('sftp', 'pass', 'word-0451');
    hideOption('sftp', 'host', 'nas.example');
    hideOption('crypt', 'remote', ":webdav,url='https://nas.example/dav/?q=TOP4',pass=TOP4b-word:");
    assert.equal(masked('nas.example said word-0451'), 'nas.example said ********');
    for (const said of [
      'Get "https://nas.example/dav/?q=TOP4": dial tcp',
      "couldn't find :webdav,url='https://nas.example/dav/?q=TOP4',pass=TOP4b-word:",
      'TOP4b-word is wrong',
    ])
      assert.doesNotMatch(inPlainWords([said], 'x'), /TOP4/, said);
  });

  it('is shown without the query of an address, known or not', () => {
    assert.equal(masked('Get "https://h/p?token=TOP1": refused'), 'Get "https://h/p?…": refused');
    assert.equal(masked('(http://h/?a=b) is it? yes'), '(http://h/?…) is it? yes');
    assert.doesNotMatch(inPlainWords(['Put https://h/x?sig=TOP2 connection refused'], 'x'), /TOP2/);
  });

  it('keeps what everybody may know', () => {
    for (const said of ['dial tcp 10.0.0.1:22: connection refused', 'what? no', 'a/b?c'])
      assert.equal(masked(said), said);
    hideOption('sftp', 'pass', 'abc');
    assert.equal(masked('abcde'), 'abcde', 'a word of three letters would mask half of all there is');
  });
});
