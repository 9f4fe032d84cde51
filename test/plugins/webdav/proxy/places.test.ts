import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { tmpdir } from 'node:os';
import { describe, it } from 'node:test';

const MODULE = new URL('../../../../plugins/webdav/proxy/places.js', import.meta.url).href;

/** What a process of its own prints that was given a folder as its descriptor 4. */
async function said(script: string): Promise<string> {
  const folder = await open(tmpdir());
  try {
    const source = `import { at, isGiven, takePlaces } from '${MODULE}'; ${script}`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', source], {
      stdio: ['ignore', 'pipe', 'inherit', 'ignore', folder.fd],
    });
    assert.ok(child.stdout);
    const [printed] = await Promise.all([text(child.stdout), once(child, 'close')]);
    return printed;
  } finally {
    await folder.close();
  }
}

describe('the folders that the proxy of WebDAV was given', () => {
  it('are reached by what was opened, and are the only ones that its notes may name', async () => {
    const asked = ['/x/spool', '/x/spool/a', '/x/spool/b/c', '/etc/passwd', '/x/spool/../../etc/passwd'];
    const script =
      `console.log(isGiven('/etc/passwd')); takePlaces(['/x/spool']); ` +
      `for (const path of ${JSON.stringify(asked)}) console.log(at(path), isGiven(path));`;
    assert.deepEqual((await said(script)).trim().split('\n'), [
      'true',
      '/proc/self/fd/4 false',
      '/proc/self/fd/4/a true',
      '/x/spool/b/c false',
      '/etc/passwd false',
      '/x/spool/../../etc/passwd false',
    ]);
  });
});
