/** Run as a process: announces so many SMB servers by multicast DNS at an address. */
import multicastDns from 'multicast-dns';

const [, , address = '', count = '1'] = process.argv;
const TYPE = '_smb._tcp.local';
const names = Array.from({ length: Number(count) }, (_, index) => `disk ${index}`);
const mdns = multicastDns({ interface: address, bind: '0.0.0.0' });

mdns.on('query', ({ questions = [] }) => {
  if (questions.some(({ name, type }) => name === TYPE && type === 'PTR'))
    for (const name of names)
      mdns.respond({ answers: [{ name: TYPE, type: 'PTR', data: `${name}.${TYPE}` }] });
  for (const { name, type } of questions) {
    const index = names.findIndex((one) => `${one}.${TYPE}` === name);
    if (type === 'SRV' && index >= 0)
      mdns.respond({ answers: [{ name, type, data: { port: 4_000 + index, target: 'disks.local' } }] });
    if (type === 'A' && name === 'disks.local') mdns.respond({ answers: [{ name, type, data: address }] });
  }
});
mdns.on('ready', () => {
  process.send?.('ready');
  console.log('ready');
});
