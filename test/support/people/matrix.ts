/** Everybody in every share over every protocol, before and after each change, and in what was open. */
import { readdir, readFile, rename } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';
import type { Daemon } from '../daemon/daemon.ts';
import type { Access, Protocol } from '../clients/protocols.ts';
import type { Random } from '../config/random-documents.ts';
import type { ConfigParts, TomlValue } from '../config/config-text.ts';
import { flagged } from '../exports/client-programs.ts';
import { SEED, STRAY, VISITING } from '../exports/visits.ts';
import type { Visit } from '../exports/visits.ts';
import { changed as changedBy } from './changes.ts';
import { HeldOpen } from './held-open.ts';
import { identityOf, rightOf } from './model.ts';
import type { Office, Right } from './model.ts';

const RANK: Readonly<Record<Right, number>> = { none: 0, read: 1, write: 2 };
const PROTOCOLS: readonly Protocol[] = ['smb', 'nfs', 'webdav'];
/** Until all servers have read a document and put out whom they have to, on a machine that is busy. */
const SETTLED_MS = 60_000;
/** NFS shows nothing until somebody may mount it, so that it comes up with the first document. */
const ALL_UP = { smbd_running: true, webdav_running: true, nfs_exported: true };

interface Cell {
  readonly protocol: Protocol;
  readonly person: string;
  readonly share: string;
}

/** A visit that was another one than the right allows. */
interface Wrong {
  readonly cell: Cell;
  readonly said: string;
  /** Somebody could do what is not allowed; else: could not do what is. */
  readonly isMore: boolean;
}

export interface MatrixParts {
  readonly daemon: Daemon;
  readonly access: Access;
  /** The shares' own keys, by their names. */
  readonly shares: ConfigParts['shares'];
  readonly random: Random;
}

/** What came of one change. */
export interface Turn {
  readonly said: string;
  /** From the answer on, until each cell that is another one was right; clients take most of it. */
  readonly settledMs: number;
  readonly cells: number;
  /** Of them, those that the change made others. */
  readonly changed: number;
  readonly held: number;
  /** Empty when all is as the configuration says. */
  readonly wrong: readonly string[];
}

export class PeopleMatrix {
  readonly #parts: MatrixParts;
  readonly #held: HeldOpen;
  #office: Office;

  constructor(office: Office, parts: MatrixParts) {
    this.#parts = parts;
    this.#office = office;
    const { access, daemon } = parts;
    this.#held = new HeldOpen({ access, mountPoint: (share) => daemon.mountPoint(share) });
  }

  /** The first document, once all servers have taken it. Resolves with what is wrong. */
  async begin(): Promise<readonly string[]> {
    await this.#submit(this.#office);
    await flagged(this.#parts.daemon, ALL_UP, SETTLED_MS);
    return (await this.#settle()).wrong;
  }

  /** One change of a kind that is left. Undefined when none of them finds anything to change. */
  async turn(kinds: string[]): Promise<Turn | undefined> {
    const next = changedBy(this.#office, kinds, this.#parts.random);
    return next && this.#turn(next.office, next.said);
  }

  /** One change; `alter` says what it does. */
  step(alter: (office: Office) => string): Promise<Turn> {
    const next = structuredClone(this.#office);
    const said = alter(next);
    return this.#turn(next, said);
  }

  async #turn(next: Office, said: string): Promise<Turn> {
    const former = this.#office;
    await this.#held.open(former, next);
    const held = this.#held.count;
    const stillOpen = await this.#submit(next);
    this.#office = next;
    const tooMuch = await this.#tooMuch(former, stillOpen);
    const { settledMs, wrong } = await this.#settle(former);
    const inOpen = await this.#held.tried(former, next);
    const cells = this.#cells();
    const changed = cells.filter(
      ({ person, protocol, share }) =>
        rightOf(former, protocol, person, share) !== rightOf(next, protocol, person, share),
    ).length;
    return {
      said,
      settledMs,
      cells: cells.length,
      changed,
      held,
      wrong: [...tooMuch, ...wrong, ...inOpen],
    };
  }

  close(): void {
    this.#held.close();
  }

  /** Resolves with the protocols that are not said to keep out at once whom they have to. */
  async #submit({ allowed, groups, guest, shares, smb, webdav }: Office): Promise<readonly string[]> {
    const { daemon, shares: own } = this.#parts;
    const sections = {
      groups,
      smb: { users: smb as unknown as TomlValue, guest },
      webdav: { users: webdav as unknown as TomlValue },
      nfs: { allowed_clients: allowed },
    };
    const named = own.map((share) => ({ ...share, ...shares[share['name'] as string] }));
    const { body } = await daemon.submit(daemon.text({ shares: named as ConfigParts['shares'], sections }));
    if (body.message !== 'Config applied successfully')
      throw new Error(`${body.message} ${JSON.stringify(body)}`);
    return body.still_open ?? [];
  }

  /** Looks once, right after the answer, at those who have lost something: nobody has more than the document gives. */
  async #tooMuch(former: Office, stillOpen: readonly string[]): Promise<readonly string[]> {
    const lost = this.#cells().filter(
      ({ person, protocol, share }) =>
        !stillOpen.includes(protocol) &&
        RANK[rightOf(former, protocol, person, share)] > RANK[rightOf(this.#office, protocol, person, share)],
    );
    return (await this.#tried(lost))
      .filter(({ isMore }) => isMore)
      .map(({ said }) => `though the change was said to be in force, ${said}`);
  }

  /** Tries the cells that are others now until they are right, and then all of them once. */
  async #settle(former?: Office): Promise<{ readonly settledMs: number; readonly wrong: readonly string[] }> {
    const begun = performance.now();
    const all = this.#cells();
    const isOther = ({ person, protocol, share }: Cell): boolean =>
      !former || rightOf(former, protocol, person, share) !== rightOf(this.#office, protocol, person, share);
    let left = all.filter(isOther);
    while (left.length > 0 && performance.now() - begun < SETTLED_MS)
      left = (await this.#tried(left)).map(({ cell }) => cell);
    const settledMs = performance.now() - begun;
    return { settledMs, wrong: (await this.#tried(all)).map(({ said }) => said) };
  }

  #cells(): readonly Cell[] {
    return Object.keys(this.#office.shares).flatMap((share) =>
      PROTOCOLS.flatMap((protocol) =>
        Object.keys(this.#office.addresses).map((person) => ({ protocol, person, share })),
      ),
    );
  }

  /**
   * In a share one after the other, since each renames the same file; who is a stranger to WebDAV beside them, since
   * wrong passwords wait for their answer.
   */
  async #tried(cells: readonly Cell[]): Promise<readonly Wrong[]> {
    const isStranger = ({ person, protocol }: Cell): boolean =>
      protocol === 'webdav' && identityOf(this.#office, protocol, person) === 'stranger';
    await this.#bringSeedsBack();
    const rows = Object.keys(this.#office.shares).map((share) =>
      cells.filter((cell) => cell.share === share && !isStranger(cell)),
    );
    const strangers = cells.filter(isStranger).map((cell) => [cell]);
    const found = await Promise.all([...rows, ...strangers].map((row) => this.#row(row)));
    return found.flat();
  }

  /** Who is put out between two renames leaves the seed under another name. Seen from this machine, not by a server. */
  async #bringSeedsBack(): Promise<void> {
    for (const share of Object.keys(this.#office.shares)) {
      const folder = this.#parts.daemon.mountPoint(share);
      const names = await readdir(folder);
      if (names.includes('seed.txt')) continue;
      for (const name of names.filter((one) => STRAY.test(one)))
        if (SEED.test(await readFile(`${folder}/${name}`, 'utf8')))
          await rename(`${folder}/${name}`, `${folder}/seed.txt`);
    }
  }

  async #row(cells: readonly Cell[]): Promise<Wrong[]> {
    const wrong: Wrong[] = [];
    for (const cell of cells) {
      const { person, protocol, share } = cell;
      const visitor = {
        name: person,
        password: this.#office.typed[person] ?? '',
        address: this.#office.addresses[person] ?? '',
      };
      const visit = await VISITING[protocol](this.#parts.access, visitor, share);
      const right = rightOf(this.#office, protocol, person, share);
      if (!isAsSaid(visit, right))
        wrong.push({
          cell,
          isMore: isMore(visit, right),
          said: `${person} in ${share} over ${protocol} should have ${right}: ${JSON.stringify(visit)}`,
        });
    }
    return wrong;
  }
}

function isMore({ list, read, rename, write }: Visit, right: Right): boolean {
  if (right === 'none') return list || read || write || rename;
  return right === 'read' && (write || rename);
}

function isAsSaid(visit: Visit, right: Right): boolean {
  const { list, read, write } = visit;
  const isIn = right !== 'none';
  const mayWrite = right === 'write';
  return list === isIn && read === isIn && write === mayWrite && visit.rename === mayWrite;
}
