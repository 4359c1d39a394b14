// Puts points, then asks for them through the unmodified npm client `opentsdb`, which only reads.
//
//     node push.js HOST PORT SECONDS OUT
//
// OUT gets one line a value: `metric timestamp value`; every series has the one tag host=here. It ends with 1 and a line where an
// answer is not what was sent.
const fs = require('fs');
const path = require('path');
const { createRequire } = require('module');

// The modules lie where tests/clients/install put them, not beside this file.
const load = createRequire(path.join(process.env.CLIENTS_NPM, 'node_modules/'));
const opentsdb = load('opentsdb');
const [host, port, , out] = process.argv.slice(2);
// On a whole ten seconds, so that every bucket of the downsampled query is full and its rate is exact.
const now = Math.floor(Date.now() / 10000) * 10;

function expect(ok, what, got) {
  if (!ok) {
    console.error(what + ':', JSON.stringify(got));
    process.exit(1);
  }
}

function ask(client, method) {
  return new Promise((done, fail) => client[method]((error, answer) => error ? fail(new Error(JSON.stringify(error))) : done(answer)));
}

async function main() {
  const points = [];
  for (let i = 0; i < 30; i++) {
    points.push({ metric: 'npm.whole', timestamp: now - 60 + i, value: i * 7, tags: { host: 'here' } });
    points.push({ metric: 'npm.broken', timestamp: now - 60 + i, value: i / 4, tags: { host: 'here' } });
  }
  fs.writeFileSync(out, points.map((point) => `${point.metric} ${point.timestamp} ${point.value}\n`).join(''));
  const put = await fetch(`http://${host}:${port}/api/put`, { method: 'POST', body: JSON.stringify(points) });
  expect(put.status === 204, 'put', put.status);

  const client = opentsdb.client();
  client.host(host);
  client.port(Number(port));
  client.ms(true);
  client.arrays(true);
  client.tsuids(true);
  client.annotations('all');
  client.start((now - 100) * 1000);
  client.end(now * 1000);
  const plain = opentsdb.mquery();
  plain.aggregator('sum').metric('npm.whole').tags('host', '*');
  const rate = opentsdb.mquery();
  rate.aggregator('sum').downsample('10s-avg').rate(true).metric('npm.broken').tags('host', '*');
  client.queries(plain, rate);
  const answer = await ask(client, 'get');
  expect(answer.length === 2 && answer[0].metric === 'npm.whole' && answer[0].tags.host === 'here', 'query', answer);
  expect(answer[0].tsuids.length === 1, 'tsuids', answer[0]);
  const sent = points.filter((point) => point.metric === 'npm.whole').map((point) => [point.timestamp * 1000, point.value]);
  expect(JSON.stringify(answer[0].dps) === JSON.stringify(sent), 'points', answer[0].dps);
  expect(answer[1].dps.length >= 1 && answer[1].dps.every(([, value]) => value === 0.25), 'rates', answer[1].dps);

  const metrics = await ask(client, 'metrics');
  expect(metrics.includes('npm.whole') && metrics.includes('npm.broken'), 'metrics', metrics);
  const aggregators = await ask(client, 'aggregators');
  expect(aggregators.length === 35, 'aggregators', aggregators);
  const version = await ask(client, 'version');
  expect(typeof version.version === 'string', 'version', version);
  const config = await ask(client, 'config');
  expect(config['tsd.mode'] === 'rw', 'config', config);
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
