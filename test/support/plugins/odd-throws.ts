/** What a plugin may throw, each a trap for whoever makes words of it. */

function trap(): never {
  throw new Error('a trap');
}

function withGetter(name: string): Error {
  return Object.defineProperty(new Error('hidden'), name, { get: trap, enumerable: true });
}

function round(): Error {
  const error = new Error('round');
  error.cause = error;
  return error;
}

function endless(): Error {
  let at = new Error('0');
  for (let n = 1; n < 20_000; n += 1) at = new Error(String(n), { cause: at });
  return at;
}

const proxy = new Proxy(new Error('x'), {
  get: trap,
  getPrototypeOf: trap,
  ownKeys: trap,
  has: trap,
  getOwnPropertyDescriptor: trap,
  defineProperty: trap,
  set: trap,
});
const revoked = Proxy.revocable(new Error('x'), {});
revoked.revoke();

/** By what they are. */
export const ODD_THROWS: Readonly<Record<string, unknown>> = {
  nothing: undefined,
  null: null,
  'an empty text': '',
  'a text': 'just a text',
  'a number': 7,
  'a symbol': Symbol('odd'),
  'a function': trap,
  'a bigint': 7n,
  'an object': { code: 5 },
  'an object without a prototype': Object.create(null),
  'an object whose texts throw': { toString: trap, [Symbol.toPrimitive]: trap, toJSON: trap },
  'a message that throws': withGetter('message'),
  'a stack that throws': withGetter('stack'),
  'a cause that throws': withGetter('cause'),
  'a name that throws': withGetter('name'),
  'a field that throws': withGetter('field'),
  'a constructor that throws': withGetter('constructor'),
  'a message that is no text': Object.assign(new Error('x'), { message: { a: 1 } }),
  'a stack that is no text': Object.assign(new TypeError('bad stack'), { stack: 5 }),
  'a frozen error': Object.freeze(new Error('frozen')),
  'an error without a message': new Error(''),
  'an error that is its own cause': round(),
  'an error with many causes': endless(),
  'a huge message': new Error('x'.repeat(5_000_000)),
  'many lines': new Error('one\n\ntwo\u001b[31m'),
  'a proxy that throws': proxy,
  'a proxy that was revoked': revoked.proxy,
};
