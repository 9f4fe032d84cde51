import { isIPv4 } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import type { Answer, Question, SrvAnswer, StringAnswer, TxtAnswer } from 'dns-packet';
import type { Link } from './links.ts';

/** Time to live, in seconds: short for records that may change with the network, long for the others. */
const HOST_TTL_S = 120;
const OTHER_TTL_S = 4_500;
/** Time to live for clients that ask like an ordinary resolver. */
const LEGACY_TTL_S = 10;
const META = '_services._dns-sd._udp.local';
/** Device type by which Finder chooses an icon. */
const MODEL = 'model=RackMac';

export type Record = StringAnswer | SrvAnswer | TxtAnswer;

export interface Records {
  readonly all: readonly Record[];
  /** Unique records: no other machine on the network may have them. */
  readonly unique: readonly Record[];
}

/** All records of this machine on one network. */
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

/** The answer to a query; undefined when it is not for this machine or the client knows all of it. */
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

/** The form for ordinary resolvers. */
export function plainReply({ answers, additionals }: Reply): Reply {
  const plain = (record: Record): Record => ({ ...record, ttl: LEGACY_TTL_S, flush: false });
  return { answers: answers.map(plain), additionals: additionals.map(plain) };
}

/** Whether another machine uses this machine's name. */
export function isRival(answers: readonly Answer[], { all, unique }: Records): boolean {
  return answers.some(
    (answer) =>
      unique.some((own) => own.type === answer.type && sameName(own.name, answer.name)) &&
      !all.some((own) => isSame(answer, own)),
  );
}

/** The records and those that they refer to. */
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
