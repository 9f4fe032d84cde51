import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../support/daemon.ts';
import { Nas } from '../support/nas.ts';
import { freePort } from '../support/ports.ts';
import { allProcesses } from '../support/processes.ts';
import { rclones } from '../support/rclones.ts';
import { createScratch } from '../support/scratch.ts';
import type { Scratch } from '../support/scratch.ts';
import { sleep, until } from '../support/until.ts';
import { exportStatus, localFile, runClient, sumOf } from '../support/exports/exports.ts';

const BYTES = 24_000_000;

for (const rclone of rclones()) {
  describe(`a file that is moved over while something is killed, over WebDAV, with ${rclone.label}`, () => {
    let scratch: Scratch;
    let nas: Nas;
    let daemon: Daemon;
    let port: number;

    const url = (path = ''): string => `http://127.0.0.1:${port}/team/${path}`;
    const dav = async (...args: string[]): Promise<number> => Number((await runClient('curl', ['-sS', '-o', '/dev/null', '-w', '%{http_code}', '-u', 'alice:wonder', ...args], 45_000)).output.slice(-3));
    const get = async (name: string): Promise<string> => {
      const { code, output } = await runClient('curl', ['-sS', '--fail', '-o', scratch.path('seen'), '-u', 'alice:wonder', url(name)], 45_000);
      assert.equal(code, 0, output);
      return sumOf(scratch.path('seen'));
    };
    /** Sent until it is answered at all: the front may be away for a moment. */
    const wasPut = (from: string, name: string) => until(`${name} is taken`, async () => [201, 204].includes(await dav('-T', from, url(name))), { timeoutMs: 15_000, everyMs: 200 });
    const pidOf = async (isIt: (command: string) => boolean): Promise<number> => {
      const found = await until('it runs', async () => (await allProcesses()).find(({ command }) => isIt(command)), { timeoutMs: 10_000 });
      return found.pid;
    };

    before(async () => {
      scratch = await createScratch('dav-over');
      nas = await Nas.create(scratch, { files: { 'team/from nas.bin': 300_000 } });
      port = await freePort();
      daemon = await Daemon.create(scratch, {
        rclone: rclone.command, connections: [nas.connection('nas')], shares: [{ name: 'team', connection: 'nas', remote_path: 'team' }],
        sections: { mount: { write_back: '1s' }, webdav: { enabled: true, port, users: [{ name: 'alice', password: 'wonder' }] } },
      });
      await daemon.start();
      await daemon.healthy();
      await until('WebDAV is served', async () => (await exportStatus(daemon)).webdav_running, { timeoutMs: 15_000 });
    });
    after(() => scratch.close());

    it('has the old or the new content of a file that is moved over, whatever is killed meanwhile', async () => {
      const old = await localFile(scratch, 'old', BYTES);
      const fresh = await localFile(scratch, 'fresh', BYTES + 1);
      const victims = {
        'the process behind the mount': () => daemon.rclonePid('team'),
        'the front': () => pidOf((command) => command.includes('front-main.js') && command.includes(daemon.stateDir)),
        ...(rclone.command === 'rclone' ? { 'the server beside the mount': () => pidOf((command) => command.includes('serve webdav') && command.includes(daemon.mountPoint('team'))) } : {}),
      };
      for (const [who, find] of Object.entries(victims)) {
        await wasPut(old.path, 'kept.bin');
        await until('the old one is on the NAS', async () => (await nas.has('team/kept.bin')) && (await nas.checksum('team/kept.bin')) === old.sum, { timeoutMs: 20_000, everyMs: 100 });
        await wasPut(fresh.path, 'fresh.bin');
        const victim = await find();
        const absences: string[] = [];
        const stop = new AbortController();
        const watching = (async () => {
          for (; !stop.signal.aborted; await sleep(5)) if (!(await nas.has('team/kept.bin'))) absences.push(who);
        })();
        const moving = dav('-X', 'MOVE', '-H', `Destination: ${url('kept.bin')}`, url('fresh.bin'));
        // Reading the source takes some 50 ms, writing over the target as long again.
        await sleep(90);
        process.kill(victim, 'SIGKILL');
        const status = await moving;
        const sums = [old.sum, fresh.sum];
        try {
          const found = await until(`${who} is back, and the file whole`, async () => {
            const sum = await get('kept.bin');
            return sums.includes(sum) && sum;
          }, { timeoutMs: 20_000, everyMs: 100 });
          if (status === 204) assert.equal(found, fresh.sum, who);
          else assert.ok(found === fresh.sum || (await get('fresh.bin')) === fresh.sum, `${who}: the new content is nowhere`);
          await until(`${who}: it is whole on the NAS`, async () => sums.includes(await nas.checksum('team/kept.bin')), { timeoutMs: 20_000, everyMs: 200 });
        } finally {
          stop.abort();
          await watching;
        }
        assert.deepEqual(absences, [], 'the target was taken away from the NAS for a moment');
        await dav('-X', 'DELETE', url('fresh.bin'));
      }
    });
  });
}
