export default {
  testEnvironment: '<rootDir>/hack/jest/environment.js',
  roots: ['<rootDir>/src', '<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '\\.ts$': '<rootDir>/hack/jest/strip-types.js' },
  testSequencer: '<rootDir>/hack/jest/sequencer.js',
  reporters: ['default', '<rootDir>/hack/jest/count-reporter.js'],
  testTimeout: 90_000,
  maxWorkers: 2,
};
