import { isIPv4 } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import type { Answer, Question, SrvAnswer, StringAnswer, TxtAnswer } from 'dns-packet';
import type { Link } from './links.ts';

/** What may change hands with a network comes to be asked again soon; the rest is kept for long. */
const HOST_TTL_S = 120;
const OTHER_TTL_S = 4_500;
/** Who asks as an ordinary resolver does keeps the answer only this long. */
const LEGACY_TTL_S = 10;
const META = '_services._dns-sd._udp.local';
/** Finder's picture for the machine. */
const MODEL = 'model=RackMac';

export type Record = StringAnswer | SrvAnswer | TxtAnswer;

export interface Records {
  readonly all: readonly Record[];
  /** Those whose name nobody else in the network may have. */
  readonly unique: readonly Record[];
}

/** All that is true of this machine in one network. */
export function recordsOf(name: string, { offers, addresses }: Link): Records {
  const host = `${name}.local`;
  const services = offers.flatMap(({ service, port, details = {} }): Record[] => {
    const type = `${service}.local`;
    const instance = `${name}.${type}`;
    const text = Object.entries(details).map(([key, value]) => `${key}=${value}`);
    return [
      { name: META, type: 'PTR', ttl: OTHER_TTL_S, data: type },
      { name: type, type: 'PTR', ttl: OTHER_TTL_S, data: instance },
      {
        name: instance,
        type: 'SRV',
        ttl: HOST_TTL_S,
        flush: true,
        data: { port, target: host, priority: 0, weight: 0 },
      },
      { name: instance, type: 'TXT', ttl: OTHER_TTL_S, flush: true, data: text.length === 0 ? [''] : text },
    ];
  });
  const device: Record = {
    name: `${name}._device-info._tcp.local`,
    type: 'TXT',
    ttl: OTHER_TTL_S,
    flush: true,
    data: [MODEL],
  };
  const hosts = addresses.map((data): Record => ({
    name: host,
    type: isIPv4(data) ? 'A' : 'AAAA',
    ttl: HOST_TTL_S,
    flush: true,
    data,
  }));
  return {
    all: [...services, device, ...hosts],
    unique: [...services.filter(({ type }) => type === 'SRV'), ...hosts],
  };
}

export interface Reply {
  readonly answers: readonly Record[];
  readonly additionals: readonly Record[];
}

/** What is to be said to a question; undefined when it is not for this machine or the asker knows it all. */
export function replyTo(
  questions: readonly Question[],
  known: readonly Answer[],
  { all }: Records,
): Reply | undefined {
  const meant = all.filter((record) => questions.some((question) => isAskedFor(record, question)));
  const answers = meant.filter(
    (record) =>
      !known.some(
        (one) =>
          isSame(one, record) &&
          (one as Record).ttl !== undefined &&
          Number((one as Record).ttl) >= Number(record.ttl) / 2,
      ),
  );
  if (answers.length === 0) return undefined;
  const behind = follow(follow(answers, all), all);
  return { answers, additionals: behind.filter((record) => !answers.includes(record)) };
}

/** As an ordinary resolver takes it. */
export function plainReply({ answers, additionals }: Reply): Reply {
  const plain = (record: Record): Record => ({ ...record, ttl: LEGACY_TTL_S, flush: false });
  return { answers: answers.map(plain), additionals: additionals.map(plain) };
}

/** Whether another machine goes by a name that is this one's. */
export function isRival(answers: readonly Answer[], { all, unique }: Records): boolean {
  return answers.some(
    (answer) =>
      unique.some((own) => own.type === answer.type && sameName(own.name, answer.name)) &&
      !all.some((own) => isSame(answer, own)),
  );
}

/** The records themselves and those that they point to. */
function follow(records: readonly Record[], all: readonly Record[]): readonly Record[] {
  const targets = records.flatMap((record) =>
    record.type === 'PTR' ? [record.data] : record.type === 'SRV' ? [record.data.target] : [],
  );
  return all.filter(
    (record) =>
      records.includes(record) ||
      (record.type !== 'PTR' && targets.some((target) => sameName(target, record.name))),
  );
}

function isAskedFor(record: Record, { name, type }: Question): boolean {
  return sameName(record.name, name) && ((type as string) === 'ANY' || type === record.type);
}

function isSame(answer: Answer, record: Record): boolean {
  if (answer.type !== record.type || !sameName(answer.name, record.name)) return false;
  if (record.type === 'TXT') return true;
  const { data } = answer as Record;
  if (typeof data === 'string' && typeof record.data === 'string') return sameName(data, record.data);
  return isDeepStrictEqual(comparable(data), comparable(record.data));
}

function comparable(data: unknown): unknown {
  return typeof data === 'object' && data !== null && 'target' in data && 'port' in data
    ? [String(data.target).toLowerCase(), data.port]
    : data;
}

function sameName(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
