/** What the guide on the terminal makes of the answers, and to whom it sends a password. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CliContext } from '../../../../core/contract/cli.ts';
import type { FoundNas, NasAnswers } from '../../../../core/contract/config-changes.ts';
import { readFlags } from '../../../../plugins/setup/init/flags.ts';
import { collectAnswers } from '../../../../plugins/setup/init/questions.ts';
import type { SetupCalls } from '../../../../plugins/setup/requests.ts';

const STRANGER: FoundNas = { kind: 'sftp', name: 'Your NAS', address: '192.0.2.66' };
const OTHER: FoundNas = { kind: 'webdav', name: 'attic', address: 'https://192.0.2.7:5006/' };

interface Asked {
  readonly nas: NasAnswers;
  readonly questions: readonly string[];
  readonly shown: string;
}

/** Answers every question for an address in turn, and every other with its default. */
async function guided(found: readonly FoundNas[], ...addresses: readonly string[]): Promise<Asked> {
  const questions: string[] = [];
  const shown: string[] = [];
  const waiting = [...addresses];
  const print = (text: string): void => void shown.push(text);
  const flags = readFlags(['--no-lan', '--user', 'ada']);
  assert.ok(typeof flags !== 'string');
  const { answers } = await collectAnswers({
    cli: { print, printError: print, progress: print } as unknown as CliContext,
    flags,
    calls: {
      found: async () => found,
      folders: async () => ({ ok: true, message: '', folders: ['Photos'] }),
    } as Partial<SetupCalls> as SetupCalls,
    prompter: {
      ask: async (question, usual) => {
        questions.push(`${question} [${usual}]`);
        if (!question.startsWith('Address')) return usual;
        const typed = waiting.shift() ?? assert.fail('asked for an address once more');
        return typed === '' ? usual : typed;
      },
      secret: async (question) => {
        questions.push(question);
        return 'geheim';
      },
      confirm: async () => true,
      close: () => undefined,
    },
  });
  assert.deepEqual(waiting, [], 'all addresses were asked for');
  return { nas: answers.nas, questions, shown: shown.join('\n') };
}

describe('a NAS that announces itself in the network', () => {
  it('is offered by its number, and sent no password by who only presses Enter', async () => {
    const { nas, questions } = await guided([STRANGER, OTHER], '', '', 'nas.local');
    assert.deepEqual(questions.slice(0, 4), [
      'Address of the NAS, or its number above []',
      'Address of the NAS, or its number above []',
      'Address of the NAS, or its number above []',
      'Password there (not shown; empty for none)',
    ]);
    assert.deepEqual(nas, { kind: 'smb', address: 'nas.local', user: 'ada', password: 'geheim' });
  });

  it('is taken by its number, with its kind, and its address is shown before the password', async () => {
    const { nas, shown } = await guided([STRANGER, OTHER], '3', '2');
    assert.deepEqual(nas, { kind: 'webdav', address: OTHER.address, user: 'ada', password: 'geheim' });
    assert.match(shown, /There is no number 3 above\.[^]*attic: https:\/\/192\.0\.2\.7:5006\/\n/);
  });
});

describe('a password of the LAN', () => {
  const unasked = (...args: readonly string[]) => {
    const flags = readFlags(['--address', 'smb://nas', '--user', 'ada', ...args]);
    assert.ok(typeof flags !== 'string');
    const cli = { progress: () => undefined } as unknown as CliContext;
    const folders = async () => ({ ok: true, message: '', folders: ['Photos'] });
    return collectAnswers({ cli, flags, calls: { folders } as unknown as SetupCalls, prompter: undefined });
  };

  it('is refused where nobody is there to say whose it is, and not left out in silence', async () => {
    await assert.rejects(unasked('--lan-password-file', '/dev/null'), /needs --lan-user/);
    assert.equal((await unasked()).answers.lan, undefined);
  });
});
