/** Run on another machine: asks by multicast DNS and prints what it heard, or takes a name for itself. */
import multicastDns from 'multicast-dns';

const [, , task, address = '', name = '', type = 'PTR'] = process.argv;
const mdns = multicastDns({ interface: address, bind: '0.0.0.0' });

if (task === 'ask') {
  const heard = new Map<string, string>();
  mdns.on('response', ({ answers = [], additionals = [] }) => {
    for (const one of [...answers, ...additionals])
      heard.set(JSON.stringify([one.name, one.type, 'data' in one ? readable(one.data) : '']), one.type);
  });
  // From when the question is on the wire.
  mdns.query({ questions: [{ name, type: type as never }] }, () => {
    setTimeout(() => {
      console.log(JSON.stringify([...heard.keys()].map((text) => JSON.parse(text) as unknown)));
      mdns.destroy();
    }, 700);
  });
}

if (task === 'claim') {
  mdns.on('query', ({ questions = [] }) => {
    if (questions.some((question) => question.name === `${name}.local`))
      mdns.respond({ answers: [{ name: `${name}.local`, type: 'A', ttl: 120, data: address }] });
  });
  mdns.on('ready', () => console.log('ready'));
}

function readable(data: unknown): unknown {
  if (Array.isArray(data)) return data.map((one) => String(one));
  return typeof data === 'object' && data !== null && 'target' in data && 'port' in data
    ? `${String(data.target)}:${String(data.port)}`
    : data;
}
