/**
 * Renames that change the case alone, on a NAS that tells no case apart and gives new names former spellings: the
 * uploader is killed at each of its calls, with a listing of the share that is out of date or is not.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { RemoteEntry } from 'mountkeeper';
import { DETOUR_PREFIX } from '../../plugins/uploads/compare/plan-types.ts';
import { forgetfulSmbd } from '../support/write-layer/case-blind.ts';
import { crashAt } from '../support/write-layer/uploader-crash.ts';
import { settle, TestShare, treeOf } from '../support/write-layer/uploader-share.ts';

interface Case {
  readonly first: (at: (path: string) => string) => void;
  /** After the kill. */
  readonly later?: (at: (path: string) => string) => void;
  readonly end: Readonly<Record<string, string>>;
}

const FILE = 'first Text';
const IN = { 'Folder/in': 'first Folder/in' };
const CASES: Readonly<Record<string, Case>> = {
  'a file whose content is on the NAS alone': {
    first: (at) => renameSync(at('Text'), at('text')),
    end: { ...IN, text: FILE },
  },
  'a file with new content': {
    first: (at) => {
      writeFileSync(at('Text'), 'second');
      renameSync(at('Text'), at('text'));
    },
    end: { ...IN, text: 'second' },
  },
  'a file that goes up before': {
    first: (at) => writeFileSync(at('Text'), 'second'),
    later: (at) => renameSync(at('Text'), at('text')),
    end: { ...IN, text: 'second' },
  },
  'a file that is written after': {
    first: (at) => renameSync(at('Text'), at('text')),
    later: (at) => writeFileSync(at('text'), 'second'),
    end: { ...IN, text: 'second' },
  },
  'a file, and back': {
    first: (at) => renameSync(at('Text'), at('text')),
    later: (at) => renameSync(at('text'), at('Text')),
    end: { ...IN, Text: FILE },
  },
  'a file with new content, and back': {
    first: (at) => {
      writeFileSync(at('Text'), 'second');
      renameSync(at('Text'), at('text'));
    },
    later: (at) => renameSync(at('text'), at('Text')),
    end: { ...IN, Text: 'second' },
  },
  'a file that is deleted after': {
    first: (at) => renameSync(at('Text'), at('text')),
    later: (at) => rmSync(at('text')),
    end: IN,
  },
  'a file that is deleted and made anew': {
    first: (at) => {
      rmSync(at('Text'));
      writeFileSync(at('text'), 'another');
    },
    end: { ...IN, text: 'another' },
  },
  'a folder': {
    first: (at) => renameSync(at('Folder'), at('folder')),
    end: { Text: FILE, 'folder/in': 'first Folder/in' },
  },
  'a folder, then the file in it': {
    first: (at) => renameSync(at('Folder'), at('folder')),
    later: (at) => renameSync(at('folder/in'), at('folder/IN')),
    end: { Text: FILE, 'folder/IN': 'first Folder/in' },
  },
  'a folder, and back': {
    first: (at) => renameSync(at('Folder'), at('folder')),
    later: (at) => renameSync(at('folder'), at('Folder')),
    end: { Text: FILE, ...IN },
  },
};

const FORMER: ReadonlyMap<string, RemoteEntry> = new Map([
  [
    'Text',
    {
      name: 'Text',
      kind: 'file',
      version: { bytes: FILE.length, modifiedMs: 1_700_000_000_000 },
    },
  ],
]);

async function made(): Promise<TestShare> {
  const share = new TestShare();
  mkdirSync(join(share.nas, 'Folder'));
  for (const path of ['Text', 'Folder/in']) {
    writeFileSync(join(share.nas, path), `first ${path}`);
    utimesSync(join(share.nas, path), 1_700_000_000, 1_700_000_000);
  }
  share.files = forgetfulSmbd(share.remote(), share.nas);
  for (const path of ['TEXT', 'FOLDER', 'FOLDER/iN'])
    await share.remote().stat(path, { signal: new AbortController().signal });
  share.up();
  return share;
}

/** False when it was through before the call that it was to be killed at. */
async function killed(share: TestShare, calls: number): Promise<boolean> {
  const { fault, struck } = crashAt(calls);
  const uploader = share.uploader(fault);
  let isStruck = false;
  const strike = struck.then(() => (isStruck = true));
  await Promise.race([settle(uploader).catch(() => undefined), strike]);
  if (!isStruck) await uploader.stop();
  return isStruck;
}

async function run({ first, later, end }: Case, calls: number, isOld: boolean): Promise<boolean> {
  const share = await made();
  try {
    first((path) => share.at(path));
    const isKilled = await killed(share, calls);
    if (isKilled) await share.renew();
    if (isOld) share.stillShown = FORMER;
    const uploader = share.uploader();
    try {
      later?.((path) => share.at(path));
    } catch {
      // A file without data that the NAS has moved cannot be opened, or its folder be gone into, until an uploader
      // knows of that.
      await settle(uploader);
      later?.((path) => share.at(path));
    }
    await settle(uploader);
    await uploader.stop();
    const files = Object.fromEntries([...treeOf(share.nas)].filter(([, content]) => content !== '/'));
    assert.deepEqual(files, end, `killed at call ${calls}${isOld ? ', with an old listing' : ''}`);
    const between = readdirSync(share.nas).filter((name) => name.startsWith(DETOUR_PREFIX));
    assert.deepEqual([between, share.conflicts], [[], []], `killed at call ${calls}`);
    return isKilled;
  } finally {
    share.close();
  }
}

describe('a rename that changes the case alone comes to the NAS wherever the uploader is killed', () => {
  for (const [name, one] of Object.entries(CASES))
    for (const isOld of name.startsWith('a folder') ? [false] : [false, true])
      it(`${name}${isOld ? ', with an old listing' : ''}`, async (t) => {
        let calls = 1;
        while (await run(one, calls, isOld)) calls += 1;
        t.diagnostic(`${calls} calls`);
      });
});
