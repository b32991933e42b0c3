const mayUse = require('./hack/dependencies.cjs');

const tests = '[.]test[.]ts$';

const downwards = Object.entries(mayUse).map(([folder, others]) => ({
  name: `${folder.replaceAll('/', '-')}-uses-only-what-is-below`,
  severity: 'error',
  from: { path: `^src/${folder}(/|$)`, pathNot: tests },
  to: { path: '^src/', pathNot: `^src/(${[folder, ...others].join('|')})(/|$)` },
}));

/** A package that only some folders may know, so that it can be replaced there. */
const confined = (name, folders) => ({
  name: `${name.replace(/\W+/g, '-').replace(/^-/, '')}-is-confined`,
  severity: 'error',
  from: { path: '^src/', pathNot: `${tests}|^src/(${folders.join('|')})/` },
  to: { path: `^node_modules/${name}/` },
});

module.exports = {
  forbidden: [
    ...downwards,
    confined('@kubernetes/client-node', ['store/kubernetes', 'cmd']),
    confined('ioredis', ['redis']),
    confined('@ariakit/react', ['web/ui']),
    {
      name: 'every-folder-has-its-rule',
      severity: 'error',
      from: { path: '^src/', pathNot: `^src/(${[...Object.keys(mayUse), 'cmd'].join('|')})(/|$)` },
      to: {},
    },
    {
      name: 'resources-are-written-by-write-transactions',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/facade/records/write-transaction[.]ts$' },
      to: { path: '^src/facade/records/object-writes[.]ts$' },
    },
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'nothing-unresolved', severity: 'error', from: {}, to: { couldNotResolve: true } },
    { name: 'program-knows-no-tests', severity: 'error', from: { path: '^src/', pathNot: tests }, to: { path: `^(test|hack)/|${tests}` } },
    {
      name: 'program-knows-no-development-packages',
      severity: 'error',
      // What the console uses is built into its files.
      from: { path: '^src/', pathNot: `${tests}|^src/web/` },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], dependencyTypesNot: ['type-only'] },
    },
  ],
  options: {
    parser: 'swc',
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: {
      extensions: ['.ts', '.js', '.json'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
};
