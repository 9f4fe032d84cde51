import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { restartNotice } from '../../../core/config/restart-notice.ts';
import { NAS, accepted, openRoom } from '../../support/config/config-fixture.ts';
import type { Room } from '../../support/config/config-fixture.ts';

describe('the notice of what waits for the restart', () => {
  const rooms: Room[] = [];
  afterEach(() => {
    for (const room of rooms.splice(0)) room.close();
  });

  /** From the document without any section to one with these. */
  const noticeOf = async (sections: string): Promise<string | undefined> => {
    const room = openRoom();
    rooms.push(room);
    const started = await room.run(NAS);
    const next = accepted(await room.service.check(`${NAS}${sections}`, 'file'));
    return restartNotice(room.service.compare(started.config, next.config))?.message;
  };

  it('names those keys alone, and is gone when they are as at the start', async () => {
    assert.equal(await noticeOf('[web]\nport = 1234\n[cache]\nmax_size = "1G"\n'), undefined);
    assert.match(
      (await noticeOf('[log]\nfile = "x.log"\nlevel = "debug"\n[web]\nport = 1234\n')) ?? '',
      /^log\.file, log\.level: .*next start/,
    );
    assert.match(
      (await noticeOf('[supervisor]\nstate_dir = "/srv/state"\npoll_interval = "3s"\n')) ?? '',
      /^supervisor\.state_dir: /,
    );
    assert.equal(await noticeOf('[log]\nlevel = "info"\n'), undefined);
  });
});
