import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { createScratch } from '../support/platform/scratch-folder.ts';
import { waitingForProcessor } from './processor-pressure.ts';

describe('the pressure on the processors', () => {
  it('is the share of ten seconds in which somebody waited, and none where the kernel does not say', async (t) => {
    const scratch = await createScratch('pressure');
    t.after(() => scratch.close());
    const file = scratch.path('cpu');
    await writeFile(
      file,
      'some avg10=62.50 avg60=74.41 avg300=69.47 total=17981123946\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n',
    );
    assert.equal(waitingForProcessor(file), 0.625);
    await writeFile(file, 'nothing of the kind\n');
    assert.equal(waitingForProcessor(file), 0);
    assert.equal(waitingForProcessor(scratch.path('none')), 0);
    const here = waitingForProcessor();
    assert.ok(here >= 0 && here <= 1, `${here}`);
  });
});
